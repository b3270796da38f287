import type { Logger } from 'pino';
import { isOfOneMachine } from '../../platform/config/bind-address.ts';
import type { ChannelCaller } from './channel-caller.ts';
import type { Instance } from './instance.ts';
import { type InstanceDirectory, urlFrom } from './instance-directory.ts';

/** What an operator learns from the log of an address at which the other instances do not find this one. */
export function createAddressChecks({
  instance,
  directory,
  caller,
  log,
}: {
  readonly instance: Pick<Instance, 'id' | 'machineId'>;
  readonly directory: Pick<InstanceDirectory, 'find' | 'list'>;
  readonly caller: Pick<ChannelCaller, 'identify'>;
  readonly log: Logger;
}) {
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
  return { checkOwnAddress, warnOfMissingAddress };
}
