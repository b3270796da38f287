import { serviceTitle } from '../protocol/service-title.ts';

/** What the free data of a service (`info`) tells visitors of it; what is not as it should be is left out. */
export interface ServiceInfo {
  /** The name of the service where it has no other. */
  readonly title: string;
  readonly description: string | undefined;
  /** Under which heading it stands. */
  readonly group: string | undefined;
  /** An emoji or a few letters, or the address of an image. */
  readonly icon: string | undefined;
  /** Who looks after it. */
  readonly contact: string | undefined;
}

export function serviceInfo(service: {
  readonly name: string;
  readonly info: Readonly<Record<string, unknown>>;
}): ServiceInfo {
  const text = (key: string): string | undefined => {
    const value = service.info[key];
    return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;
  };
  return {
    title: serviceTitle(service),
    description: text('description'),
    group: text('group'),
    icon: text('icon'),
    contact: text('contact'),
  };
}
