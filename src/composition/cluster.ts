import { createChannelCaller } from '../cluster/instances/channel-caller.ts';
import { createChannelReceiver } from '../cluster/instances/channel-receiver.ts';
import { channelPath, createChannelSignature } from '../cluster/instances/channel-signature.ts';
import { createHopProof } from '../cluster/instances/hop-proof.ts';
import { openInstanceDirectory, urlFrom } from '../cluster/instances/instance-directory.ts';
import { createFiguresReader, type InstanceReport } from '../cluster/instances/instance-figures.ts';
import {
  createInstanceOverview,
  figuresOperation,
} from '../cluster/instances/instance-overview.ts';
import { isOfOneMachine } from '../platform/config/bind-address.ts';
import type { Foundation } from './foundation.ts';

/** The instances of the hub, and how they reach each other. */
export async function openInstances(hub: Foundation) {
  const { secrets, instance, log, disposables } = hub;
  const path = hub.urls.hub + channelPath;
  const signature = createChannelSignature(secrets);
  const shared = { path, self: instance, signature, log };
  const caller = createChannelCaller(shared);
  const directory = disposables.use(
    await openInstanceDirectory({
      ...hub,
      store: hub.instanceStore,
      here: instance,
    }),
  );

  /** Says in the log when what the others are told of this instance would lead them elsewhere. */
  async function checkOwnAddress(): Promise<void> {
    const own = directory.find(instance.id);
    const url = own === undefined ? undefined : urlFrom(instance, own);
    if (url === undefined) return;
    const party = await caller.identify(url);
    if (party.kind === 'instance' && party.id === instance.id) return;
    const reason =
      party.kind === 'instance' ? `the instance "${party.name}" answers there` : party.reason;
    log.warn(
      { url, reason },
      `the address of this instance, ${url}, does not lead to it: ${reason}. ` +
        'Set Hub.instance_url to where the other instances reach its hub_bind_url.',
    );
  }

  let hasWarned = false;
  /** Says in the log, once, that instances on other machines have no way to this one. */
  function warnOfMissingAddress(): void {
    const own = directory.find(instance.id);
    const isLocal = own?.url === undefined || isOfOneMachine(own.url);
    const far = directory
      .list()
      .find((each) => each.isLive && each.machineId !== instance.machineId);
    if (hasWarned || !isLocal || far === undefined) return;
    hasWarned = true;
    log.warn(
      { instance: far.name },
      `the instance "${far.name}" on another machine cannot reach this one: ` +
        'let Hub.hub_bind_url listen on the network between them, and set Hub.instance_url to that address',
    );
  }
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
