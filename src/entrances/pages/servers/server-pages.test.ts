import { describe, expect, test } from 'vitest';
import { layout, now, server } from '../../../../test/support/pages-of-alice.ts';
import { english } from '../../../platform/texts/language.ts';
import { loadLanguages } from '../../../platform/texts/languages.ts';
import { text } from '../../../platform/texts/text.ts';
import { renderHtml } from '../html.ts';
import { type NotRunningView, notRunningPage } from './not-running-page.ts';
import { type SpawnOptionsView, spawnOptionsPage } from './spawn-options-page.ts';
import { spawnPendingPage, stopPendingPage } from './spawn-pending-page.ts';

const german = (await loadLanguages()).find('de') ?? english;

describe('the options of a start', () => {
  const options = (view: Partial<SpawnOptionsView>): string =>
    String(
      spawnOptionsPage({ layout, server: { userName: 'alice', name: '' }, profiles: [], ...view }),
    );
  const profiles = [
    { name: 'small', description: '' },
    { name: 'large', displayName: 'Large', description: '32 GB', isDefault: true },
  ];
  const checked = (page: string) => /value="([a-z]+)" checked/.exec(page)?.[1];

  test('chooses what was chosen before, else the default, else the first', () => {
    expect(checked(options({ profiles, chosenProfile: 'small' }))).toBe('small');
    expect(checked(options({ profiles }))).toBe('large');
    expect(checked(options({ profiles: profiles.slice(0, 1) }))).toBe('small');
    expect(checked(options({ profiles, chosenProfile: 'gone' }))).toBe('large');
  });

  test('says what each costs, where it costs something', () => {
    const prices = { server_hour: 0, cpu_hour: 0.0405, gib_hour: 0, gpu_hour: 0 };
    const [large] = profiles.slice(1);
    const page = options({ profiles: [{ ...large!, prices }], currency: '€' });
    expect(page.match(/<span>[^<]*hour<\/span>/g)).toEqual(['<span>0.0405 € per CPU hour</span>']);
  });

  test('makes a field of each kind of question', () => {
    const page = options({
      form: {
        fields: [
          { name: 'folder', label: 'Folder', type: 'text', default: '~' },
          { name: 'hours', label: 'Hours', type: 'number', required: true, min: 1, max: 24 },
          { name: 'gpu', label: 'GPU', type: 'checkbox', default: 'true' },
          {
            name: 'image',
            label: 'Image',
            type: 'select',
            choices: [
              { value: 'r', label: 'R' },
              { value: 'py', label: 'Python' },
            ],
          },
        ],
      },
      values: { image: 'py' },
      problems: { hours: 'At most 24.' },
    });
    expect(page).toMatch(/name="option-folder" type="text" value="~"/);
    expect(page).toMatch(
      /name="option-hours" type="number"[^>]* min="1" max="24" step="any" required/,
    );
    expect(page).toMatch(/id="field-option-gpu" name="option-gpu" value="true" checked/);
    expect(page).toContain('<option value="py" selected>Python</option>');
    expect(page).toContain('At most 24.');
  });
});

describe('a server that is on its way', () => {
  const page = String(
    spawnPendingPage({
      layout,
      server: server('starting', { name: 'thesis' }),
      progress: 40,
      steps: [
        { message: 'Server requested' },
        { message: 'Waiting, 2nd of 2.', phase: 'pending' },
        { message: 'Waiting, 1st of 1.', phase: 'pending' },
        { message: 'Pulling: 1 of 3 layers.', phase: 'pulling' },
        { message: 'Pulling: 3 of 3 layers.', phase: 'pulling' },
        { message: 'The container is started.', phase: 'starting' },
      ],
      eventsUrl: '/hub/api/users/alice/servers/thesis/progress',
      readyUrl: '/user/alice/thesis/lab?a=1',
    }),
  );

  test('is followed by a script, and by reloading without one', () => {
    expect(page).toContain('data-progress-url="/hub/api/users/alice/servers/thesis/progress"');
    expect(page).toContain('data-ready-url="/user/alice/thesis/lab?a=1"');
    expect(page).toContain('<noscript><meta http-equiv="refresh" content="3"></noscript>');
  });

  test('says in the language of its reader what has happened', () => {
    const shown = renderHtml(
      spawnPendingPage({
        layout,
        server: server('starting'),
        progress: 30,
        steps: [{ message: text`The program is started.` }],
        eventsUrl: '/events',
        readyUrl: '/user/alice/',
      }),
      german,
    );
    expect(shown).toContain('<li>Das Programm ist gestartet.</li>');
  });

  test('can be cancelled', () => {
    expect(page).toContain('action="/hub/stop/alice/thesis"');
  });

  test('shows how far it is', () => {
    expect(page).toContain('<progress id="progress" max="100" value="40"');
    expect(page).toContain('<li>Server requested</li>');
  });

  test('has one line for the queue and one for the image, with what was told last', () => {
    expect(Array.from(page.matchAll(/<li(?: [^>]*)?>([^<]*)/g), ([, text]) => text)).toEqual([
      'Server requested',
      'Waiting, 1st of 1.',
      'Pulling: 3 of 3 layers.',
      'The container is started.',
    ]);
  });

  test('shows what the server writes, to who may see it', () => {
    const view = {
      layout,
      server: server('starting'),
      progress: 0,
      steps: [],
      eventsUrl: '/e',
      readyUrl: '/user/alice/',
    };
    const written = (lines: readonly string[]) =>
      String(spawnPendingPage({ ...view, output: { url: '/o', lines } }));
    expect(written(['one', 'two'])).toMatch(/data-output-url="\/o"><pre[^>]*>one\ntwo<\/pre>/);
    expect(written([])).toContain('data-output-url="/o" hidden>');
    expect(String(spawnPendingPage(view))).not.toContain('start-output');
  });

  describe('with the time it takes', () => {
    const timed = (seconds: number, more: object = {}) =>
      String(
        spawnPendingPage({
          layout,
          server: server('starting'),
          progress: 10,
          steps: [],
          since: new Date(now.getTime() - seconds * 1000),
          eventsUrl: '/e',
          readyUrl: '/user/alice/',
          ...more,
        }),
      ).replaceAll(/<[^>]*hidden>[^<]*<[^>]*>|<[^>]*>/g, '');

    test.for([
      [8, 12_345, '8 s so far; usually takes 12 s\n'],
      [125, 200, '2 min 5 s so far; usually takes 1 s\n'],
      [4_330, undefined, '1 h 12 min so far\n'],
      // Clocks of two machines differ.
      [-3, undefined, '0 s so far\n'],
    ] as const)('%s seconds after its beginning', ([seconds, usualMs, text]) => {
      expect(timed(seconds, { usualMs })).toContain(text);
    });

    test('a queue is no part of what is usual', () => {
      const steps = [{ message: 'Waiting, 1st of 2.', phase: 'pending' as const }];
      const page = timed(60, { steps, usualMs: 5_000 });
      expect(page).toContain('1 min 0 s so far; usually takes 5 s after the queue\n');
    });
  });

  test('keeps its steps a list inside of what is read out', () => {
    const page = String(
      spawnPendingPage({
        layout,
        server: server('starting'),
        progress: 0,
        steps: [{ message: 'Preparing' }],
        eventsUrl: '/e',
        readyUrl: '/user/alice/',
      }),
    );
    expect(page).toMatch(/<div role="log"[^>]*><ol class="events" id="events"><li>Preparing<\/li>/);
  });

  test('never leads to a script when it is ready', () => {
    const hostile = spawnPendingPage({
      layout,
      server: server('starting'),
      progress: 0,
      steps: [],
      eventsUrl: '/e',
      readyUrl: 'javascript:alert(1)',
    });
    expect(String(hostile)).toContain('data-ready-url="/hub/home"');
  });

  test('that stops is followed too', () => {
    const stopping = String(stopPendingPage({ layout, server: server('stopping') }));
    expect(stopping).toContain('data-live-seconds="2"');
    expect(stopping).toContain('http-equiv="refresh"');
  });
});

describe('a server that does not run', () => {
  const notRunning = (view: Partial<NotRunningView>): string =>
    String(
      notRunningPage({
        layout,
        server: server('stopped'),
        mayStart: true,
        hasSpawnOptions: false,
        ...view,
      }),
    );

  test('is started from its own page, and leads on to what was asked for', () => {
    const page = notRunning({ next: '/user/alice/lab' });
    expect(page).toContain('action="/hub/spawn/alice"');
    expect(page).toContain('name="next" value="/user/alice/lab"');
  });

  test('asks for options first where there are any', () => {
    expect(notRunning({ hasSpawnOptions: true, next: '/user/alice/lab' })).toContain(
      'href="/hub/spawn/alice?next=%2Fuser%2Falice%2Flab"',
    );
  });

  test('says why it failed, with the last lines it wrote', () => {
    const page = notRunning({
      failure: {
        message: 'It ended with exit code 1.',
        at: new Date(now.getTime() - 120_000),
        output: ['one', '<two>'],
      },
    });
    expect(page).toContain('It ended with exit code 1.');
    expect(page).toContain('2 minutes ago');
    expect(page).toContain('one\n&lt;two&gt;');
    expect(page).toContain('Try again');
  });

  test('offers no start to those who may not start it', () => {
    const page = notRunning({ server: { userName: 'bob', name: '' }, mayStart: false });
    expect(page).toContain('Server of bob is not running');
    expect(page).not.toContain('/hub/spawn/');
  });
});
