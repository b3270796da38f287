import type { PageEdge } from '../../../platform/store/page-edge.ts';
import type { ServiceInfo } from '../../../workloads/services/service-info.ts';
import type { ServiceState } from '../../../workloads/services/service-status.ts';
import { edgeFields, edgeIn } from '../elements/table.ts';

/** Which part of a list of services a page shows, as its address says it. */
export interface ServicesQuery {
  /** Part of a title, name or description; empty for any. */
  readonly search: string;
  readonly group: string | undefined;
  readonly show: ShownState | undefined;
  /** Where the page borders on the one from which it was reached. */
  readonly edge?: PageEdge | undefined;
}

/** The states that are told apart when services are counted. */
export const shownStates = {
  ready: ['ready'],
  starting: ['starting', 'restarting'],
  unhealthy: ['unhealthy'],
  crash_looping: ['crash_looping'],
  stopped: ['stopped', 'stopping'],
} as const satisfies Record<string, readonly ServiceState[]>;

export type ShownState = keyof typeof shownStates;

const maxTextLength = 255;

/** What an address asks for; anything that cannot be is taken as not said. */
export function readServicesQuery(given: URLSearchParams): ServicesQuery {
  const text = (name: string) => (given.get(name) ?? '').slice(0, maxTextLength).trim();
  const show = text('show');
  const edge = edgeIn(given);
  return {
    search: text('search'),
    group: text('group') || undefined,
    show: Object.hasOwn(shownStates, show) ? (show as ShownState) : undefined,
    ...(edge && { edge }),
  };
}

/** The address of a part of the list at `url`. */
export function servicesUrl(url: string, { search, group, show, edge }: ServicesQuery): string {
  const said = new URLSearchParams({
    ...(search !== '' && { search }),
    ...(group !== undefined && { group }),
    ...(show !== undefined && { show }),
    ...edgeFields(edge),
  });
  return said.size === 0 ? url : `${url}?${said}`;
}

/** Whether what visitors read of a service, or its name, has the text in it. */
export function matchesSearch(
  search: string,
  texts: Pick<ServiceInfo, 'title'> &
    Partial<Pick<ServiceInfo, 'description' | 'group'>> & { readonly name: string },
): boolean {
  const { name, title, description, group } = texts;
  const sought = search.toLowerCase();
  return [name, title, description, group].some((each) => each?.toLowerCase().includes(sought));
}

/** What has a problem comes first in a list that is sorted by it. */
export function urgencyOf(state: ServiceState): number {
  if (isShownAs('crash_looping', state)) return 0;
  return isShownAs('unhealthy', state) ? 1 : 2;
}

export function isShownAs(shown: ShownState, state: ServiceState): boolean {
  return (shownStates[shown] as readonly ServiceState[]).includes(state);
}
