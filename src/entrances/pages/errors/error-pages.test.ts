import { describe, expect, test } from 'vitest';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { createPageUrls } from '../page-urls.ts';
import { serviceUnavailablePage } from '../services/service-unavailable-page.ts';
import { confirmPage } from './confirm-page.ts';
import { type ErrorView, errorPage, notFoundPage } from './error-page.ts';

const layout: FormLayoutProps = {
  hubTitle: 'Hub',
  urls: createPageUrls('/'),
  assets: { url: (name) => `/hub/static/${name}` },
  now: new Date('2026-11-20T10:00:00Z'),
  csrfToken: 'csrf-token',
  requestId: 'request-1',
};
const loggedIn = { ...layout, user: { name: 'alice', mayAdminister: false } };

describe('the error page', () => {
  const error = (view: Partial<ErrorView>): string =>
    String(errorPage({ layout, status: 500, message: 'It broke.', ...view }));

  test('says what happened, what to do, and by which ids to ask', () => {
    const page = error({ hint: 'Try again.', errorId: 'error-1' });
    for (const text of ['Error 500', 'It broke.', 'Try again.', 'error-1', 'request-1'])
      expect(page).toContain(text);
  });

  test('always has something to do next, also for a status it does not know', () => {
    expect(error({ status: 418 })).toContain('Go back and try it again');
    expect(error({ status: 599 })).toContain('Wait a moment');
  });

  test('says how long to wait', () => {
    expect(error({ status: 429, retryAfterSeconds: 20 })).toContain('Try again in 20 seconds.');
    expect(error({ status: 503, hint: 'The hub is starting.', retryAfterSeconds: 1 })).toContain(
      'The hub is starting. Try again in 1 second.',
    );
  });

  test('leads home, or to the login when that is what is missing', () => {
    expect(error({ status: 401 })).toContain('href="/hub/login">Log in');
    expect(error({ status: 403, layout: loggedIn })).toContain(
      'href="/hub/home">Go to your home page',
    );
    expect(error({ action: { label: 'Elsewhere', url: '/x' } })).toContain('href="/x">Elsewhere');
  });

  test('has the navigation of those who are logged in', () => {
    expect(error({ status: 404, layout: loggedIn })).toContain('<nav class="site-nav"');
    expect(error({ status: 404 })).not.toContain('<nav class="site-nav"');
  });

  test('shows details only when there are some', () => {
    expect(error({})).not.toContain('<details');
    expect(error({ details: 'stack' })).toContain('stack');
  });
});

test('an address where nothing is says so', () => {
  expect(String(notFoundPage({ layout }))).toContain('There is no page at this address.');
});

describe('the page of a service that is not ready', () => {
  const page = (kind: 'starting' | 'crash_looping'): string =>
    String(
      serviceUnavailablePage({
        layout,
        serviceName: 'gallery',
        why: { kind },
        retryAfterSeconds: 2,
        url: '/services/gallery/',
      }),
    );

  test('tries again by itself, with and without scripts', () => {
    expect(page('starting')).toContain('data-retry-seconds="2"');
    expect(page('starting')).toContain(
      '<noscript><meta http-equiv="refresh" content="2"></noscript>',
    );
  });

  test('admits that a service keeps failing', () => {
    expect(page('crash_looping')).toContain('stopped several times in a row');
    expect(page('starting')).not.toContain('several times');
  });
});

describe('the page that asks before something is destroyed', () => {
  const view = {
    layout,
    title: 'Delete bob?',
    consequences: ['All is lost.'],
    label: 'Delete bob',
    action: '/d',
    cancelUrl: '/c',
  };

  test('names the deed and lets people go back', () => {
    const page = String(confirmPage(view));
    expect(page).toContain('<button class="button primary danger">Delete bob</button>');
    expect(page).toContain('href="/c">Cancel');
    expect(page).toContain('All is lost.');
    expect(page).not.toContain('name="confirmation"');
  });

  test('can ask for a name to be typed', () => {
    const page = String(confirmPage({ ...view, typeToConfirm: 'bob', problem: 'Not the name.' }));
    expect(page).toContain('Type bob to confirm');
    expect(page).toContain('Not the name.');
  });
});
