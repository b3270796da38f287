import { brotliCompressSync, constants } from 'node:zlib';
import { expect, test } from 'vitest';
import { samplePages } from '../../../test/support/sample-pages.ts';
import { readUsersQuery } from '../../operations/users-query.ts';
import { type LoadSeries, loadSpans } from '../../platform/metrics/load-history.ts';
import type { PlacedStatus } from '../../workloads/services/service-status.ts';
import { adminServicesPage } from './admin/services-page.ts';
import { adminUsersPage } from './admin/users-page.ts';
import { type Assets, loadAssets } from './assets/assets.ts';
import { renderHtml } from './html.ts';
import { createPageUrls } from './page-urls.ts';

/** One for all of a page: what is a millisecond newer than the page is described in more words. */
const now = new Date();
const longAgo = new Date(now.getTime() - 59 * 60_000);

function layoutWith(assets: Assets) {
  return {
    hubTitle: 'Hub',
    urls: createPageUrls('/'),
    assets,
    now,
    csrfToken: 'csrf-token',
    user: { name: 'root', mayAdminister: true },
  };
}

/** The weight of a page with all that it loads. */
function kibibytesOf(page: string, assets: Assets): number {
  const linked = ['site.css', 'live-state.js'] as const;
  const bytes = linked.map((name) => assets.find(assets.url(name))?.body.length ?? Infinity);
  return bytes.reduce((sum, each) => sum + each, Buffer.byteLength(page)) / 1024;
}

/** What a browser is sent of the page itself: `sendText` compresses with this quality. */
function sentKibibytesOf(page: string): number {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 4 };
  return brotliCompressSync(page, { params }).length / 1024;
}

test('every page is at most 12 KiB on the wire', async () => {
  const pages = samplePages(await loadAssets({ staticUrl: '/hub/static/' }));
  const heavy = Object.entries(pages)
    .map(([name, page]) => [name, sentKibibytesOf(renderHtml(page))] as const)
    .filter(([, kibibytes]) => kibibytes > 12);
  expect(heavy).toEqual([]);
});

test('a full page of the administration with a plot in each row weighs at most 100 KiB', async () => {
  const assets = await loadAssets({ staticUrl: '/hub/static/' });
  const figures = Array.from({ length: loadSpans.hour.steps }, (_, step) => (step % 7) * 123e6);
  const load = { figures: { cpuCores: figures, memoryBytes: figures } } as unknown as LoadSeries;
  const services = Array.from({ length: 25 }, (_, index) => ({
    displayName: `Tool number ${index} with a longer title`,
    url: `/services/tool-${index}/`,
    load,
    status: {
      name: `tool-${index}-of-a-longer-name`,
      kind: 'managed',
      state: 'ready',
      isReady: true,
      since: longAgo,
      restarts: 3,
      instance: 'hub-a',
      usage: { cpuCores: 0.3, memoryBytes: 1e8, processes: 1 },
    } as unknown as PlacedStatus,
  }));
  const page = adminServicesPage({
    layout: layoutWith(assets),
    mayAdd: true,
    query: { search: '', group: undefined, show: undefined },
    services,
    total: 500,
    borders: { first: undefined, last: 'x' },
    size: 25,
    counts: { all: 500, ready: 500, starting: 0, unhealthy: 0, crash_looping: 0, stopped: 0 },
  });
  const html = renderHtml(page);
  expect(html.match(/<svg class="spark"/g)).toHaveLength(50);
  expect(kibibytesOf(html, assets)).toBeLessThan(100);
  expect(sentKibibytesOf(html)).toBeLessThan(12);
});

test.each([10, 25, 50])(
  'a page of %i users whose servers run weighs at most 100 KiB, and 8 KiB on the wire',
  async (size) => {
    const assets = await loadAssets({ staticUrl: '/hub/static/' });
    const figures = Array.from({ length: loadSpans.hour.steps }, (_, step) => (step % 7) * 123e6);
    const load = { figures: { cpuCores: figures, memoryBytes: figures } } as unknown as LoadSeries;
    const page = adminUsersPage({
      layout: layoutWith(assets),
      query: readUsersQuery(new URLSearchParams({ size: String(size), show: 'running' })),
      users: Array.from({ length: size }, (_, index) => ({
        name: `user-${50_000 + index}`,
        leadsTo: 'user',
        isAdmin: false,

        isSuspended: false,
        groups: ['course-0007', 'everyone-of-the-first-year'],
        createdAt: longAgo,
        lastActivityAt: longAgo,
        server: 'running',
        openUrl: `/user/user-${50_000 + index}/`,
        load,
        mayStart: true,
        mayStop: true,
        runningNamedServers: 0,
      })),
      total: 100_000,
      borders: { first: 'user-49999', last: 'user-50050' },
      counts: {
        all: 100_000,
        running: 100_000,
        starting: 0,
        failed: 0,
        never_active: 0,
        administrator: 1,
        suspended: 0,
        invited: 0,
        invitation_expiring: 0,
        invitation_expired: 0,
      },
      acts: [{ name: 'start', label: 'Start the servers of' }],
      mayAdd: true,
      known: { account: true, activity: true, groups: true, servers: true },
    });
    const html = renderHtml(page);
    expect(html.match(/<svg class="spark"/g) ?? []).toHaveLength(size === 10 ? 20 : 0);
    expect(kibibytesOf(html, assets)).toBeLessThan(100);
    expect(sentKibibytesOf(html)).toBeLessThan(8);
  },
);
