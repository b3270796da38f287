import { createChannelCaller } from '../cluster/instances/channel-caller.ts';
import { createChannelReceiver } from '../cluster/instances/channel-receiver.ts';
import { channelPath, createChannelSignature } from '../cluster/instances/channel-signature.ts';
import { createHopProof } from '../cluster/instances/hop-proof.ts';
import { openInstanceDirectory } from '../cluster/instances/instance-directory.ts';
import { createFiguresReader, type InstanceReport } from '../cluster/instances/instance-figures.ts';
import {
  createInstanceOverview,
  figuresOperation,
} from '../cluster/instances/instance-overview.ts';
import { createAddressChecks } from '../cluster/instances/own-address.ts';
import type { Foundation } from './foundation.ts';

/** The instances of the hub, and how they reach each other. */
export async function openInstances(hub: Foundation) {
  const { secrets, instance, log, disposables } = hub;
  const path = hub.urls.hub + channelPath;
  const signature = createChannelSignature(secrets);
  const { identity } = hub;
  const shared = { path, self: instance, signature, identity, log };
  const caller = createChannelCaller(shared);
  const directory = disposables.use(
    await openInstanceDirectory({
      ...hub,
      store: hub.instanceStore,
      here: instance,
    }),
  );

  const { checkOwnAddress, warnOfMissingAddress } = createAddressChecks({
    instance,
    directory,
    caller,
    log,
  });
  disposables.defer(directory.onRefresh(warnOfMissingAddress));

  const channel = createChannelReceiver(shared);
  const readFigures = createFiguresReader();
  let gateways: () => InstanceReport['gateways'] = () => undefined;
  const report = (): InstanceReport => ({ ...readFigures(), gateways: gateways() });
  channel.handle(figuresOperation, async () => report());
  const overview = createInstanceOverview({
    ...hub,
    directory,
    caller,
    report,
  });

  return {
    directory,
    caller,
    channel,
    instances: overview,
    /** Which gateways there are, for the overview. */
    tellGateways(list: typeof gateways): void {
      gateways = list;
    },
    hopProof: createHopProof(secrets),
    checkOwnAddress,
  };
}
