import { readPageOf } from '../../../platform/store/page-edge.ts';
import type { Language } from '../../../platform/texts/language.ts';
import { type Text, text } from '../../../platform/texts/text.ts';
import { serviceInfo } from '../../../workloads/services/service-info.ts';
import { bordersOf } from '../elements/table.ts';
import type { BoundPages, ModelOf, Shown } from '../forms/binding.ts';
import { placeKey, placeOf } from '../services/service-places.ts';
import {
  matchesSearch,
  readServicesQuery,
  type ShownState,
  servicesParameters,
  shownStates,
  urgencyOf,
} from '../services/services-query.ts';
import { accessViewOf } from './access-routes.ts';
import { adminServicePage } from './service-page.ts';
import { adminServicesPage, type ListedService } from './services-page.ts';

/** Services on a page: with the plots in each row, more would make a page of more than 100 KiB. */
const pageSize = 25;

/** `/hub/admin/services`: how every service is, and the page of each. */
export function adminServiceRoutes({ page, form, pages: { urls } }: BoundPages): void {
  const show = async (shown: Shown<ModelOf<'viewServices'>>) => {
    const { layout, model, search, language, may } = shown;
    const query = readServicesQuery(search);
    const ordered = model.toSorted(
      (one, other) => urgencyOf(one.status.state) - urgencyOf(other.status.state),
    );
    const positions = new Map(ordered.map(({ name }, index) => [name, index]));
    const found = ordered.flatMap((service) => listedIn(service, query.search, language) ?? []);
    const shownAs = (show: ShownState | undefined) =>
      show === undefined
        ? found
        : found.filter(({ status }) => shownStates[show].includes(status.state));
    const positionOf = ({ status: { name } }: ListedService) => positions.get(name) ?? 0;
    const part = await readPageOf(
      shownAs(query.show),
      { limit: pageSize, edge: query.edge },
      {
        placeOf: (key) =>
          placeOf(key, (name) => {
            const position = positions.get(name);
            return position === undefined ? undefined : [position];
          }),
        compare: (service, [position = 0]) => positionOf(service) - position,
      },
    );
    const states = Object.keys(shownStates) as ShownState[];
    return adminServicesPage({
      layout,
      query,
      services: part.items,
      borders: bordersOf(part, (service) => placeKey([positionOf(service)], service.status.name)),
      total: part.total,
      size: pageSize,
      counts: Object.fromEntries([
        ['all', found.length],
        ...states.map((state) => [state, shownAs(state).length] as const),
      ]) as Record<ShownState | 'all', number>,
      mayAdd: may('createService'),
    });
  };
  page('/admin/services', 'viewServices', show, { query: servicesParameters });

  page('/admin/services/{service}', 'viewService', ({ layout, model, may }) => {
    const { service, isEditable, isOfRuntime } = model;
    return adminServicePage({
      layout,
      ...model,
      access: accessViewOf(model.access, {
        may,
        giveUrl: urls.adminGiveAccess({ service: service.name }),
      }),
      may: {
        run: may('startService'),
        edit: isEditable && may('changeService'),
        delete: isOfRuntime && may('deleteService'),
      },
      url: service.address,
    });
  });

  const said: Readonly<Record<'start' | 'stop' | 'restart', (name: string) => Text>> = {
    start: (name) => text`${name} is starting.`,
    stop: (name) => text`${name} is stopping.`,
    restart: (name) => text`${name} is restarting.`,
  };
  const operations = {
    start: 'startService',
    stop: 'stopService',
    restart: 'restartService',
  } as const;
  for (const action of ['start', 'stop', 'restart'] as const) {
    form(`/admin/services/{service}/${action}`, operations[action], {
      done: ({ params: { service = '' } }) => ({
        to: urls.adminService(service),
        say: said[action](service),
      }),
    });
  }
}

/** A row of the list; undefined where the search is for others. */
function listedIn(
  { name, service, address, status, load }: ModelOf<'viewServices'>[number],
  search: string,
  language: Language,
): ListedService | undefined {
  const info = serviceInfo(service, language);
  if (!matchesSearch(search, { ...info, name })) return undefined;
  return { displayName: info.title === name ? undefined : info.title, url: address, status, load };
}
