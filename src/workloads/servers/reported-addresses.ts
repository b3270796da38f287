import type { ChannelCaller } from '../../cluster/instances/channel-caller.ts';
import type { InstanceDirectory } from '../../cluster/instances/instance-directory.ts';
import type { ReportedAddress } from '../../plugin/host/spawn-request.ts';
import type { AddressReports } from './address-reports.ts';
import type { Server } from './server.ts';

/** The operation by which an instance hands on what a server told it to the one that starts the server. */
export const addressOperation = 'server-address';

/** Addresses that servers tell, at whichever instance. */
export interface ReportedAddresses {
  /** Throws as `AddressReports.tell`, and `unavailable` where the instance that waits does not answer. */
  tell(server: Pick<Server, 'id' | 'instance'>, reported: ReportedAddress): Promise<void>;
}

interface Report extends ReportedAddress {
  readonly serverId: string;
}

/** Takes what a server told another instance; that has signed it. */
export async function takeAddress(reports: AddressReports, report: unknown): Promise<object> {
  const { serverId, host, port } = report as Report;
  await reports.tell(serverId, { host, port });
  return {};
}

export function createReportedAddresses(deps: {
  readonly addressReports: AddressReports;
  readonly directory: Pick<InstanceDirectory, 'addressOf'>;
  readonly caller: Pick<ChannelCaller, 'call'>;
  readonly instance: { readonly id: string };
}): ReportedAddresses {
  const { addressReports: reports, directory, caller, instance: self } = deps;
  return {
    async tell({ id: serverId, instance }, reported) {
      const isRemote = instance !== undefined && instance.id !== self.id;
      const address = isRemote ? directory.addressOf(instance.id) : undefined;
      if (address === undefined) return reports.tell(serverId, reported);
      const report: Report = { serverId, ...reported };
      await caller.call(address, addressOperation, report);
    },
  };
}
