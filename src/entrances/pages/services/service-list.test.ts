import { describe, expect, test } from 'vitest';
import { layout, now } from '../../../../test/support/pages-of-alice.ts';
import { english } from '../../../platform/texts/language.ts';
import type { Service } from '../../../workloads/services/service.ts';
import {
  inShownOrder,
  onShelves,
  placeInOrder,
  type ServiceLink,
  serviceCards,
  toServiceLink,
} from './service-list.ts';
import { comparePlaces, placeKey } from './service-places.ts';
import { matchesSearch, readServicesQuery, servicesUrl } from './services-query.ts';

const ownPathOf = (address: string) => (address.startsWith('/') ? address : undefined);
const linkOf = (info: Record<string, unknown>, more: Partial<ServiceLink> = {}): ServiceLink => ({
  ...toServiceLink(
    {
      service: { name: 'notebook-gallery', info } as unknown as Service,
      status: undefined,
      isFavourite: false,
      lastUsedAt: undefined,
    },
    { url: '/services/notebook-gallery/', ownPathOf, language: english },
  ),
  state: 'ready',
  ...more,
});
const cards = (...links: ServiceLink[]): string => String(serviceCards(layout, links));

describe('the icon of a service', () => {
  test.for([
    [{ icon: '/services/x/a.png' }, '<img src="/services/x/a.png" alt=""'],
    [{ icon: '📈' }, '>📈</span>'],
    [{ icon: ' 👩🏽‍🔬 ' }, '>👩🏽‍🔬</span>'],
    [{ icon: 'R2' }, '>R2</span>'],
    // Anything else is as good as none.
    [{ icon: 'https://example.org/a.png' }, '>n</span>'],
    [{ icon: 'much too long' }, '>n</span>'],
    [{ icon: `a${'\u0301'.repeat(100)}` }, '>n</span>'],
    [{ icon: 7, title: 'Notebook gallery' }, '>Ng</span>'],
    [{ icon: '<b>' }, '>&lt;b&gt;</span>'],
  ] as const)('of %j is %s', ([info, shown]) => {
    expect(cards(linkOf(info))).toContain(shown);
  });
});

test('a broken service comes last in its group, says since when, and has no button', () => {
  const since = new Date(now.getTime() - 12 * 60_000);
  const order = inShownOrder([
    linkOf({}, { name: 'plain' }),
    linkOf({}, { name: 'down', group: 'Labs', state: 'unhealthy', since }),
    linkOf({}, { name: 'up', group: 'Labs' }),
    linkOf({}, { name: 'wait', group: 'Labs', state: 'starting' }),
    linkOf({}, { name: 'book', group: 'Reading' }),
  ]);
  expect(order.map(({ name }) => name)).toEqual(['up', 'wait', 'down', 'book', 'plain']);
  const [, , down] = order;
  const page = cards(down as ServiceLink, linkOf({}, { contact: 'Grace', state: 'stopped' }));
  expect(page).toContain('Not answering');
  expect(page).toContain('12 minutes ago');
  expect(page).toContain('Ask Grace.');
  expect(page).not.toContain('class="button');
  expect(page).toContain('aria-label="Try to open notebook-gallery"');
});

test('groups have headings, and without any there is none', () => {
  const page = cards(linkOf({ group: 'Labs' }), linkOf({}));
  expect([...page.matchAll(/<h2[^>]*>([^<]*)/g)].map(([, text]) => text)).toEqual([
    'Labs',
    'Further services',
  ]);
  expect(cards(linkOf({}), linkOf({}))).not.toContain('<h2');
});

test('favourites come first, then what was used last, and only then the groups', () => {
  const links = [
    linkOf({}, { name: 'a', group: 'Labs' }),
    linkOf({}, { name: 'b', lastUsedAt: new Date(1) }),
    linkOf({}, { name: 'c', lastUsedAt: new Date(2) }),
    linkOf({}, { name: 'd', isFavourite: true, lastUsedAt: new Date(3) }),
  ];
  const page = String(serviceCards(layout, onShelves(links)));
  expect(
    [...page.matchAll(/<h2[^>]*>([^<]*)|data-key="([^"]*)"/g)].map(([, a, b]) => a ?? b),
  ).toEqual([...['Favourites', 'd', 'Used last', 'c', 'b', 'Labs', 'a']]);
  expect(page).toContain('name="unmark" value="d" aria-pressed="true"');
  expect(page).toContain('name="mark" value="a" aria-pressed="false"');
  expect(onShelves(links.slice(0, 1))).toEqual(links.slice(0, 1));
});

test('the part of a list that an address asks for', () => {
  const read = (address: string) => readServicesQuery(new URLSearchParams(address));
  expect(read('search=+a+&group=Labs&show=stopped')).toEqual({
    search: 'a',
    group: 'Labs',
    show: 'stopped',
  });
  const odd = read(`search=${'x'.repeat(1000)}&show=toString`);
  expect(odd).toMatchObject({ show: undefined });
  expect(odd.search).toHaveLength(255);
  expect(servicesUrl('/s', read('show=none'))).toBe('/s');
  expect(servicesUrl('/s', read('search=a%26b&before='))).toBe('/s?search=a%26b&before=');
  const texts = { name: 'x', title: 'Gallery', description: 'Of NOTEBOOKS', group: undefined };
  expect(['GALL', 'notebook', 'x', ''].every((each) => matchesSearch(each, texts))).toBe(true);
  expect(matchesSearch('wiki', texts)).toBe(false);
});

test('a page goes on where the one before it ended, whatever became of services meanwhile', () => {
  const labs = ['a', 'b', 'c', 'd'].map((name) => linkOf({}, { name, group: 'Labs' }));
  const all = [linkOf({}, { name: 'plain' }), ...labs];
  const afterKey = (key: string, now: readonly ServiceLink[]) => {
    const order = inShownOrder(now);
    const place = placeInOrder(order, key);
    return place && order.filter((each) => comparePlaces(each.place, place) > 0);
  };
  const names = (found: readonly ServiceLink[] | undefined) => found?.map(({ name }) => name);
  const [, b] = inShownOrder(all);
  const key = placeKey(b?.place ?? [], 'b');
  expect(names(afterKey(key, all))).toEqual(['c', 'd', 'plain']);
  // The one at the edge breaks and so comes last in its group, others are added before it or go with it.
  const broken = all.map((each) =>
    each.name === 'b' ? { ...each, state: 'unhealthy' as const } : each,
  );
  expect(names(afterKey(key, broken))).toEqual(['c', 'd', 'b', 'plain']);
  expect(names(afterKey(key, [linkOf({}, { name: 'new', group: 'Labs' }), ...all]))).toEqual([
    'c',
    'd',
    'plain',
  ]);
  expect(
    names(
      afterKey(
        key,
        all.filter(({ name }) => name !== 'b'),
      ),
    ),
  ).toEqual(['c', 'd', 'plain']);
  for (const odd of ['', 'b', '1,b', '1.2,b', '1.2.3.4,b', '1.0.99999999,b', '-1.0.1,b']) {
    expect(afterKey(odd, all), odd).toBeUndefined();
  }
});
