import { beforeEach, expect, test, vi } from 'vitest';
import { loadLanguages } from '../../../platform/texts/languages.ts';
import type { Route } from '../../../traffic/proxy/route.ts';
import type { PlacedStatus } from '../../../workloads/services/service-status.ts';
import { createPageUrls } from '../page-urls.ts';
import { createNotReadyRenderer } from './not-ready-renderer.ts';

const statusOf = vi.fn<(name: string) => PlacedStatus | undefined>();
const render = createNotReadyRenderer(
  {
    layout: {
      hubTitle: 'Hub',
      urls: createPageUrls('/'),
      assets: { url: (name) => `/hub/static/${name}` },
    },
    languages: await loadLanguages(),
    announced: { shown: () => [{ text: 'Down on Friday.', level: 'warning' }] },
  },
  {
    statusOf,
    find: (name) =>
      ({
        name,
        info:
          name === 'survey'
            ? { title: { en: 'Survey tool', de: 'Umfragen' }, contact: 'Grace, room 12' }
            : {},
      }) as never,
  },
);

const request = { url: '/x', headers: {} };

beforeEach(() => void statusOf.mockReset());

test.for([
  [{ kind: 'service', name: 'survey' }, 'Survey tool'],
  [{ kind: 'service', name: 'plain' }, 'plain'],
  [{ kind: 'server', userName: 'ada', serverName: '' }, 'Server of ada'],
  [{ kind: 'server', userName: 'ada', serverName: 'thesis' }, 'thesis'],
] as const)('what does not answer at %o is called %s', ([owner, title]) => {
  const { html, error } = render({ owner } as Route, request);
  expect(html).toContain(`<h1>${title} is not ready</h1>`);
  expect(html).toContain('Down on Friday.');
  expect(error.message).toBe(`${title} is not ready.`);
});

const survey = { owner: { kind: 'service', name: 'survey' } } as Route;
const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000);

test('a service that has not answered for minutes is not said to be starting', () => {
  statusOf.mockReturnValue({ state: 'unhealthy', since: ago(12) } as PlacedStatus);
  const { html, error } = render(survey, request);
  expect(html).toContain('It stopped responding');
  expect(html).toContain('12 minutes ago');
  expect(html).toContain('ask <strong>Grace, room 12</strong>');
  expect(html).not.toContain('starting');
  expect(html).not.toContain('<progress');
  expect(error.hint).toContain('hasn’t responded since');

  statusOf.mockReturnValue({ state: 'unhealthy', since: ago(0) } as PlacedStatus);
  expect(render(survey, request).html).toContain('It is starting or was just restarted');
});

test('a service that an administrator stopped is said to be stopped', () => {
  const stopped = { at: ago(180), by: 'ada' };
  statusOf.mockReturnValue({ state: 'stopped', stopped } as PlacedStatus);
  const { html, error } = render(survey, request);
  expect(html).toContain('<h1>Survey tool is stopped</h1>');
  expect(html).toContain('stopped by an administrator');
  expect(html).toContain('3 hours ago');
  // Who of them it was is for administrators.
  expect(html).not.toContain('ada');
  expect(error).toMatchObject({
    message: 'Survey tool is stopped.',
    hint: 'An administrator stopped it.',
  });
});
