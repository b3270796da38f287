import { expect, test } from 'vitest';
import type { Route } from '../../proxy/route.ts';
import { createPageUrls } from '../page-urls.ts';
import { createNotReadyRenderer } from './not-ready-renderer.ts';

const render = createNotReadyRenderer(
  {
    hubTitle: 'Hub',
    urls: createPageUrls('/'),
    assets: { url: (name) => `/hub/static/${name}` },
  },
  {
    statusOf: () => undefined,
    find: (name) => ({ name, info: name === 'survey' ? { title: 'Survey tool' } : {} }) as never,
  },
);

test.for([
  [{ kind: 'service', name: 'survey' }, 'Survey tool'],
  [{ kind: 'service', name: 'plain' }, 'plain'],
  [{ kind: 'server', userName: 'ada', serverName: '' }, 'Server of ada'],
  [{ kind: 'server', userName: 'ada', serverName: 'thesis' }, 'thesis'],
] as const)('what does not answer at %o is called %s', ([owner, title]) => {
  const { html, error } = render({ owner } as Route, '/x');
  expect(html).toContain(`<h1>${title} is not ready</h1>`);
  expect(error.message).toBe(`${title} is not ready.`);
});
