import { z } from 'zod';
import { edgeFields, edgeOf, listQuery, searchText } from '../../../operations/users-query.ts';
import type { PageEdge } from '../../../platform/store/page-edge.ts';
import type { ServiceInfo } from '../../../workloads/services/service-info.ts';
import type { ServiceState } from '../../../workloads/services/service-status.ts';
import { withQuery } from '../page-urls.ts';

/** Which part of a list of services a page shows, as its address says it. */
export interface ServicesQuery {
  /** Part of a title, name or description; empty for any. */
  readonly search: string;
  readonly group: string | undefined;
  readonly show: ShownState | undefined;
  /** Where the page borders on the one from which it was reached. */
  readonly edge?: PageEdge | undefined;
}

export type ShownState = 'ready' | 'starting' | 'unhealthy' | 'crash_looping' | 'stopped';

/** The states that are told apart when services are counted. */
export const shownStates: Readonly<Record<ShownState, readonly ServiceState[]>> = {
  ready: ['ready'],
  starting: ['starting', 'restarting'],
  unhealthy: ['unhealthy'],
  crash_looping: ['crash_looping'],
  stopped: ['stopped', 'stopping'],
};

const servicesQuery = listQuery.extend({
  group: searchText,
  show: z
    .enum(Object.keys(shownStates) as ShownState[])
    .optional()
    .catch(undefined),
});

/** Parameters of the address of a list of services. */
export const servicesParameters = Object.keys(servicesQuery.shape);

/** What an address asks for; anything that cannot be is taken as not said. */
export function readServicesQuery(given: URLSearchParams): ServicesQuery {
  const query = servicesQuery.parse(Object.fromEntries(given));
  const { search, group, show } = query;
  return { search, group: group || undefined, show, edge: edgeOf(query) };
}

/** The address of a part of the list at `url`. */
export function servicesUrl(url: string, { search, group, show, edge }: ServicesQuery): string {
  return withQuery(url, { search: search || undefined, group, show, ...edgeFields(edge) });
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
  if (state === 'crash_looping') return 0;
  return state === 'unhealthy' ? 1 : 2;
}
