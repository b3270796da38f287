import type { ContainerInspectInfo } from 'dockerode';

/** How the hub reaches the servers of a configuration. */
export interface Reach {
  /** Whether it connects to the address of the container, not to a published port. */
  readonly usesInternalIp: boolean;
  /** Host of published ports; undefined for the address on which they are published. */
  readonly connectHost: string | undefined;
  readonly network: string;
  readonly port: number;
}

/** The URL of a running container; undefined when the engine gave it no address. */
export function urlOf({ NetworkSettings }: ContainerInspectInfo, reach: Reach): string | undefined {
  const { usesInternalIp, connectHost, network, port } = reach;
  if (usesInternalIp) {
    const networks = NetworkSettings.Networks;
    const ip = networks[network]?.IPAddress || Object.values(networks)[0]?.IPAddress;
    return ip ? `http://${ip}:${port}` : undefined;
  }
  const [binding] = NetworkSettings.Ports?.[`${port}/tcp`] ?? [];
  if (binding === undefined) return undefined;
  const host = connectHost ?? (binding.HostIp === '0.0.0.0' ? '127.0.0.1' : binding.HostIp);
  return `http://${host.includes(':') ? `[${host}]` : host}:${binding.HostPort}`;
}
