import { readPageOf } from '../../../platform/store/page-edge.ts';
import { bordersOf } from '../elements/table.ts';
import type { BoundPages, ModelOf, Shown } from '../forms/binding.ts';
import { linksTo } from './open-services.ts';
import { placeInOrder } from './service-list.ts';
import { comparePlaces, placeKey } from './service-places.ts';
import { servicesPage } from './services-page.ts';
import { matchesSearch, readServicesQuery, servicesParameters } from './services-query.ts';

/** Cards on a page: a number that fills rows of two and three. */
const pageSize = 24;

/** `/hub/services`: what the person may open. */
export function servicesRoutes({ page, form, pages }: BoundPages): void {
  const show = async ({ layout, model, search, language }: Shown<ModelOf<'viewOpenServices'>>) => {
    const query = readServicesQuery(search);
    const accessible = linksTo(model, pages, language);
    const found = accessible.filter((each) => matchesSearch(query.search, each));
    const groups = [...Map.groupBy(found, ({ group }) => group)].flatMap(([name, members]) =>
      name === undefined ? [] : [[name, members.length] as const],
    );
    const matching =
      query.group === undefined ? found : found.filter(({ group }) => group === query.group);
    const part = await readPageOf(
      matching,
      { limit: pageSize, edge: query.edge },
      {
        placeOf: (key) => placeInOrder(accessible, key),
        compare: ({ place }, edge) => comparePlaces(place, edge),
      },
    );
    return servicesPage({
      layout,
      query,
      services: part.items,
      borders: bordersOf(part, ({ place, name }) => placeKey(place, name)),
      total: part.total,
      accessible: accessible.length,
      groups,
    });
  };
  page('/services', 'viewOpenServices', show, { query: servicesParameters });

  form('/services/favourite', 'markOwnFavourite', {
    body: (sent) => ({
      service: sent.get('mark') ?? sent.get('unmark') ?? '',
      favourite: sent.has('mark'),
    }),
    done: ({ sent }) => ({
      redirect: pages.ownPathOf(sent.get('return_to') ?? '') ?? pages.urls.services,
    }),
  });
}
