import { describe, expect, test } from 'vitest';
import { layout, now, server } from '../../../../test/support/pages-of-alice.ts';
import type { LoadSeries } from '../../../platform/metrics/load-history.ts';
import { type HomeView, homePage } from './home-page.ts';
import { serverPage } from './server-page.ts';
import type { ServerSummary, ShownServerState } from './server-summary.ts';

/** A measurement of the processors alone. */
const seriesOf = (cores: number): LoadSeries => ({
  stepSeconds: 10,
  figures: {
    cpuCores: [cores],
    memoryBytes: [null],
    requestsPerSecond: [null],
    responseSeconds: [null],
    webSockets: [null],
  },
});

describe('the home page', () => {
  const home = (view: Partial<HomeView>): string =>
    String(homePage({ layout, userName: 'alice', hasSpawnOptions: false, services: [], ...view }));

  test.for([
    ['stopped', '<button class="button primary">Start</button>'],
    ['failed', '<button class="button primary">Start again</button>'],
    ['starting', 'href="/hub/spawn-pending/alice">View progress'],
    ['running', 'href="/user/alice/">Open'],
    ['unreachable', '<button class="button">Discard server</button>'],
  ] as const)('offers for a %s server the one thing to do next', ([state, action]) => {
    expect(home({ server: server(state) })).toContain(action);
  });

  test('greets by the name that the header shows', () => {
    expect(home({})).toContain('<h1>Hello, alice</h1>');
    const user = { name: 'alice', displayName: 'Alice Liddell', mayAdminister: false };
    expect(home({ layout: { ...layout, user } })).toContain('<h1>Hello, Alice Liddell</h1>');
  });

  test('offers nothing while the server stops', () => {
    expect(home({ server: server('stopping') })).not.toMatch(/button primary|Stop</);
  });

  test('after a failure tells why, and starts again with the same options at one press', () => {
    const page = home({ server: server('failed'), hasSpawnOptions: true });
    expect(page).toContain('<a class="button" href="/hub/servers/alice">View error</a>');
    expect(page).toContain('action="/hub/spawn/alice"');
    expect(page).toContain('<a class="button" href="/hub/spawn/alice">Options…</a>');
    const servers = [server('failed', { name: 'thesis' })];
    const named = home({ namedServers: { servers, limit: 2 } });
    expect(named).toContain('href="/hub/servers/alice/thesis" aria-label="View error: thesis"');
  });

  test('asks for options first where there are any', () => {
    const page = home({ server: server('stopped'), hasSpawnOptions: true });
    expect(page).toContain('<a class="button primary" href="/hub/spawn/alice">Start…</a>');
    expect(page).not.toContain('action="/hub/spawn/alice"');
  });

  test('offers the last choice as one button where there was one, and the others beside it', () => {
    const page = home({
      server: server('stopped', { lastChoice: 'Files' }),
      hasSpawnOptions: true,
    });
    expect(page).toContain('<button class="button primary">Start again with Files</button>');
    expect(page).toContain('<a class="button" href="/hub/spawn/alice">Options…</a>');
  });

  test('shows what runs before what does not, be it named or not', () => {
    const named = (name: string, state: ShownServerState) => server(state, { name });
    const servers = [named('old', 'stopped'), named('sad', 'failed'), named('thesis', 'running')];
    const page = home({ server: server('stopped'), namedServers: { servers, limit: 0 } });
    const shown = [...page.matchAll(/<section class="panel server" .*data-label="([^"]+)"/g)];
    expect(shown.map(([, label]) => label)).toEqual(['thesis', 'sad', 'Your server', 'old']);
  });

  test('says when and from where the last login was', () => {
    const at = new Date(now.getTime() - 3_600_000);
    const page = home({ lastLogin: { at, address: '192.0.2.7' } });
    expect(page).toMatch(/Your last login: <time [^>]+>1 hour ago<\/time>, from 192\.0\.2\.7\./);
    expect(page).toContain(
      '<a href="/hub/account#sessions">Not you? See where you are logged in.</a>',
    );
    expect(home({})).not.toContain('last login');
  });

  test('follows what happens closely, what runs now and then, and nothing else', () => {
    expect(home({ server: server('starting') })).toContain('live-state.js');
    expect(home({ server: server('starting') })).toContain('data-live-seconds="3"');
    expect(home({ server: server('starting') })).toContain(
      '<noscript><meta http-equiv="refresh" content="5">',
    );
    // An idle server is stopped while the page stays open.
    expect(home({ server: server('running') })).toContain('live-state.js');
    expect(home({ server: server('running') })).toContain('data-live-seconds="60"');
    expect(home({ server: server('running') })).not.toContain('refresh');
    expect(home({ server: server('stopped') })).not.toContain('live-state.js');
  });

  test('tells when a limit stops the server, and warns of it with a way out only when that is soon', () => {
    const at = new Date(now.getTime() + 8 * 60_000);
    const stop = (reason: 'idle_timeout' | 'max_age', limitWarningSeconds: number) =>
      home({ limitWarningSeconds, server: server('running', { comingStop: { at, reason } }) });
    expect(stop('idle_timeout', 60)).toContain('in 8 minutes</time> unless it is used.');
    expect(stop('idle_timeout', 60)).not.toMatch(/class="notice warn"|Extend|seconds="3"/);
    const soon = stop('idle_timeout', 600);
    expect(soon).toContain('class="notice warn"');
    expect(soon).toContain('action="/hub/extend/alice"');
    expect(soon).toContain('data-live-seconds="3"');
    const old = stop('max_age', 600);
    expect(old).toContain('when it has run as long as it may.');
    expect(old).not.toContain('Extend');
  });

  test('tells which limit stopped the server', () => {
    const reported = (reason: 'idle_timeout' | 'max_age', seconds: number) =>
      home({ server: server('stopped', { stoppedBy: { reason, seconds }, lastActivityAt: now }) });
    expect(reported('idle_timeout', 5400)).toContain('stopped after 90 minutes without activity.');
    expect(reported('max_age', 86_400)).toContain('stopped 1 day after its start');
  });

  test('the page of a server tells which limit will stop it or has, and keeps it for who may', () => {
    const of = (
      summary: ServerSummary,
      extend = true,
      cores?: number,
      busyKernels?: readonly string[],
    ): string =>
      String(
        serverPage({
          layout,
          server: summary,
          setup: { profile: undefined, options: [], limits: {} },
          place: [],
          load: {
            series: cores === undefined ? undefined : seriesOf(cores),
            silent: [],
          },
          span: 'hour',
          idleCores: 0.05,
          busyKernels,
          maxKeptSeconds: 0,
          hasSpawnOptions: false,
          hasLastOptions: false,
          may: { open: true, start: true, stop: true, share: false, extend },
        }),
      );
    const at = new Date(now.getTime() + 8 * 60_000);
    const idle = server('running', { comingStop: { at, reason: 'idle_timeout' } });
    expect(of(idle)).toContain('in 8 minutes</time> unless it is used.');
    expect(of(idle)).toContain('what it sends counts as use');
    expect(of(idle, true, 0.02)).toContain('they take 2.0 % CPU, less than 5.0 %.');
    expect(of(idle, true, 0.5)).toContain('counts as use: its processes take 50 % CPU.');
    expect(of(idle, true, 0.02, ['a.ipynb', 'b'])).toContain('is calculating (a.ipynb, b), which');
    expect(of(idle, true, 0.02, [''])).toContain('A kernel is calculating, which counts as use');
    expect(of(idle, true, 0.02, [])).toContain('they take 2.0 % CPU');
    expect(of(idle)).toContain('action="/hub/extend/alice"');
    expect(of(idle)).toContain('name="return_to" value="/hub/servers/alice"');
    expect(of(idle, false)).not.toContain('/hub/extend/');
    const old = of(server('running', { comingStop: { at, reason: 'max_age' } }));
    expect(old).toContain('when it has run as long as it may.');
    expect(old).not.toContain('/hub/extend/');
    const stopped = server('stopped', { stoppedBy: { reason: 'idle_timeout', seconds: 5400 } });
    expect(of(stopped)).toContain('stopped after 90 minutes without activity.');
  });

  test('leaves out the server of a user who may have none', () => {
    expect(home({})).not.toContain('Your server');
    expect(home({})).toContain('There is nothing for you to open yet.');
  });

  test('lists named servers, and makes another until the limit is reached', () => {
    const servers = [server('running', { name: 'thesis', url: '/user/alice/thesis/' })];
    const page = home({ namedServers: { servers, limit: 2 } });
    expect(page).toContain('aria-label="Open thesis"');
    expect(page).toContain('action="/hub/stop/alice/thesis"');
    expect(page).toContain('action="/hub/create-server"');
    const full = home({ namedServers: { servers, limit: 1 } });
    expect(full).not.toContain('action="/hub/create-server"');
    expect(full).toContain('You have 1 named server, the most you may have.');
  });

  test('lets a named server be deleted only when it does not run', () => {
    const row = (state: ShownServerState) =>
      home({ namedServers: { servers: [server(state, { name: 'thesis' })], limit: 0 } });
    expect(row('stopped')).toContain('href="/hub/delete-server/alice/thesis"');
    expect(row('running')).not.toContain('delete-server');
  });

  test('shows services with their state and what they are for', () => {
    const page = home({
      services: [
        {
          name: 'gallery',
          title: 'gallery',
          description: 'Published notebooks',
          url: '/services/gallery/',
          state: 'crash_looping',
        },
      ],
    });
    expect(page).toContain('Published notebooks');
    expect(page).toContain('Keeps failing');
    expect(page).toContain('href="/services/gallery/"');
  });

  test('offers a search of services where there are more than eight', () => {
    const services = Array.from({ length: 9 }, (_, index) => ({
      name: `s${index}`,
      title: `Tool ${index}`,
      url: `/services/s${index}/`,
      state: 'ready' as const,
    }));
    expect(home({ services })).toContain('action="/hub/services"');
    expect(home({ services: services.slice(1) })).not.toContain('action="/hub/services"');
  });

  test('leads to home, services and, for those who may, the administration; the rest is under the name', () => {
    const linksIn = (page: string, part: RegExp) =>
      Array.from(part.exec(page)?.[0].matchAll(/<a [^>]*href="([^"]+)"/g) ?? [], ([, to]) => to);
    const admin = { ...layout, user: { name: 'root', mayAdminister: true } };
    const nav = /<nav class="site-nav"[\s\S]*?<\/nav>/;
    expect(linksIn(home({}), nav)).toEqual(['/hub/home', '/hub/services']);
    const page = home({ layout: admin });
    expect(linksIn(page, nav)).toEqual(['/hub/home', '/hub/services', '/hub/admin']);
    expect(linksIn(page, /id="user-menu"[\s\S]*?<\/header>/)).toEqual(['/hub/account']);
  });

  test('logs out by a form, and by a link where there is no CSRF token', () => {
    expect(home({})).toContain('<form method="post" action="/hub/logout">');
  });
});
