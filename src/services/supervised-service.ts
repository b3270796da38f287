import type { ProcessUsage } from '../processes/process-usage.ts';
import type { Service } from './service.ts';
import type { ServiceStatus } from './service-status.ts';

/** One service in the hub's care, managed or external. */
export interface SupervisedService {
  readonly service: Service;
  /** Begins; returns at once, whatever becomes of it. */
  start(): void;
  /** Ends it within its grace; afterwards it can be discarded. */
  stop(): Promise<void>;
  /** Starts it anew, at once, and forgets earlier failures. An external one is asked again. */
  restart(): void;
  /** Takes over changes that need no restart. */
  update(service: Service): void;
  status(usage: ProcessUsage | undefined): ServiceStatus;
}
