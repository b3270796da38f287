import type { Service } from '../../services/service.ts';
import type { ServiceState, ServiceStatus } from '../../services/service-status.ts';
import { type Html, html } from '../html.ts';

/** A service that the person may open. */
export interface ServiceLink {
  readonly name: string;
  readonly displayName?: string | undefined;
  readonly description?: string | undefined;
  readonly url: string;
  readonly state: ServiceState;
}

export function toServiceLink(
  service: Service,
  url: string,
  status: ServiceStatus | undefined,
): ServiceLink {
  const { title, description } = service.info;
  return {
    name: service.name,
    displayName: typeof title === 'string' ? title : undefined,
    description: typeof description === 'string' ? description : undefined,
    url,
    state: status?.state ?? 'stopped',
  };
}

const words = {
  ready: ['good', 'Ready'],
  starting: ['warn', 'Starting'],
  restarting: ['warn', 'Restarting'],
  stopping: ['warn', 'Stopping'],
  unhealthy: ['bad', 'Not answering'],
  crash_looping: ['bad', 'Keeps failing'],
  stopped: ['', 'Stopped'],
} as const satisfies Record<ServiceState, readonly [string, string]>;

/** The state of a service as a coloured dot and a word. */
export function serviceStatus(state: ServiceState): Html {
  const [kind, word] = words[state];
  return html`<span class="status ${kind}">${word}</span>`;
}

/** Services with what they are for, how they are, and a link to each. */
export function serviceList(services: readonly ServiceLink[]): Html {
  return html`<ul class="list">${services.map(
    (service) => html`<li>
<div class="what"><strong>${service.displayName ?? service.name}</strong>${service.description && html`<p>${service.description}</p>`}</div>
<div class="row">${serviceStatus(service.state)}<a class="button small" href="${service.url}" aria-label="Open ${service.displayName ?? service.name}">Open</a></div>
</li>`,
  )}</ul>`;
}
