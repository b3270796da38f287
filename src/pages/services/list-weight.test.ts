import { expect, test } from 'vitest';
import { type LoadSeries, loadSpans } from '../../metrics/load-history.ts';
import type { PlacedStatus } from '../../services/service-status.ts';
import { adminServicesPage } from '../admin/services-page.ts';
import { loadAssets } from '../assets/assets.ts';
import { renderHtml } from '../html.ts';
import { createPageUrls } from '../page-urls.ts';

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
      since: new Date(),
      restarts: 3,
      instance: 'hub-a',
      usage: { cpuCores: 0.3, memoryBytes: 1e8, processes: 1 },
    } as unknown as PlacedStatus,
  }));
  const page = adminServicesPage({
    layout: {
      hubTitle: 'Hub',
      urls: createPageUrls('/'),
      assets,
      now: new Date(),
      csrfToken: 'csrf-token',
      user: { name: 'root', mayAdminister: true },
    },
    mayAdd: true,
    query: { search: '', group: undefined, show: undefined, page: 1 },
    services,
    total: 500,
    size: 25,
    counts: { all: 500, ready: 500, starting: 0, unhealthy: 0, crash_looping: 0, stopped: 0 },
  });
  const html = renderHtml(page);
  expect(html.match(/<svg class="spark"/g)).toHaveLength(50);
  const linked = ['site.css', 'live-state.js'] as const;
  const bytes = linked.map((name) => assets.find(assets.url(name))?.body.length ?? Infinity);
  expect((Buffer.byteLength(html) + bytes.reduce((sum, each) => sum + each)) / 1024).toBeLessThan(
    100,
  );
});
