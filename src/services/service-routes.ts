import type { Service } from './service.ts';

/** The proxy table, as far as services change it. Called only for services with a url. */
export interface ServiceRoutes {
  /** Lets visitors through; called again when the service has changed. */
  open(service: Service): void;
  /** Keeps the route, but lets visitors wait on a page that tries again. */
  close(service: Service, reason: string): void;
  /** Takes the route away: the service is no longer configured. */
  remove(service: Service): void;
}
