import { hash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname, platform } from 'node:os';

/**
 * Names the machine for as long as it runs: processes for which this is the same see each other's pids
 * and share a loopback interface. A container is a machine of its own, and so is one after a reboot.
 */
export function readMachineId(): string {
  return hash('sha256', describeMachine(), 'base64url').slice(0, 22);
}

function describeMachine(): string {
  if (platform() !== 'linux') return hostname();
  try {
    return [
      readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim(),
      readlinkSync('/proc/self/ns/pid'),
      readlinkSync('/proc/self/ns/net'),
    ].join(' ');
  } catch {
    return hostname();
  }
}
