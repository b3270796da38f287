import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, test } from 'vitest';

/**
 * The wings of the program, lowest first, as `ls src` shows them beside the two programs: what stands in one imports
 * from itself and from those below it, types included.
 */
const wings = [
  'platform',
  'plugin',
  'spawning',
  'client',
  'cluster',
  'identity',
  'traffic',
  'singleuser',
  'workloads',
  'operations',
  'entrances',
  'composition',
] as const;

const programs = ['main.ts', 'singleuser-main.ts'];

/**
 * The floors of the wings, lowest first, written down here and nowhere else: what stands on one floor imports from its
 * own folder and from lower floors only, types included.
 */
const floors: readonly (readonly string[])[] = [
  ['platform/files'],
  ['platform/texts'],
  [
    'platform/errors.ts',
    'platform/addresses',
    'platform/concurrency',
    'platform/logging',
    'platform/metrics',
    'platform/protocol',
    'platform/undocumented',
  ],
  ['platform/config', 'platform/process-table'],
  ['platform/audit', 'platform/crypto', 'platform/branding'],
  ['platform/http'],
  ['platform/tracing'],
  ['platform/store'],
  ['platform/acme'],
  ['platform/internal-tls'],
  ['plugin/host'],
  ['plugin/plugin.ts'],
  ['spawning/processes'],
  ['spawning'],
  ['client'],
  ['cluster/instances', 'cluster/notices'],
  ['identity/users'],
  ['identity/rbac', 'identity/sessions'],
  ['identity/authentication', 'identity/oauth'],
  ['identity/accounts'],
  ['traffic/proxy'],
  ['traffic/gateway'],
  ['singleuser'],
  ['workloads/servers', 'workloads/services'],
  ['workloads/sharing', 'workloads/usage'],
  ['workloads/jupyterhub'],
  ['operations'],
  ['entrances/api', 'entrances/pages', 'entrances/cli'],
  ['composition'],
  ['singleuser-main.ts'],
  ['main.ts'],
];

/** Packages that only some places may know, and those places. */
const packagePlaces: Readonly<Record<string, RegExp>> = {
  koa: /^(http|api|pages|oauth\/endpoints|composition)\/|^(app|hub)\.ts$|^sessions\/(.*-middleware|csrf)\.ts$|^client\/koa-adapter\.ts$/,
  '@koa/router': /^(api|pages|composition)\/|^app\.ts$/,
  'koa-session': /^sessions\/.*-middleware\.ts$/,
  express: /^client\/express-adapter\.ts$/,
  kysely: /^store\/|-store\.ts$/,
  pg: /^store\//,
  'node:sqlite': /^store\//,
  commander: /^(cli|singleuser)\//,
  '@simplewebauthn/server': /^accounts\/webauthn\.ts$/,
};

/** What makes a function depend on the process it runs in; to signal others is a job like any other. */
const processMembers = /^(env|argv|exit|exitCode|stdin|stdout|stderr|cwd|chdir|umask|on|once)$/;

/** Where that may be touched. */
const processPlaces =
  /^(main|singleuser-main)\.ts$|^(composition|singleuser)\/run\.ts$|^cli\/|^config\/load\.ts$|^client\/(client-options|hub-oauth)\.ts$/;

/**
 * Where the time of day may be asked for: it can be set, so it is for what is stored, sealed or shown,
 * and no duration is measured by it.
 */
const wallClockPlaces =
  /^store\/|-store\.ts$|^oauth\/(grants|tokens)\/|^accounts\/|^pages\/|^cli\/|^logging\/create-log\.ts$|^concurrency\/(monotonic-clock|answer-cache)\.ts$|^processes\/clock\.ts$|^acme\/acme-client\.ts$|^instances\/channel-caller\.ts$|^http\/(cookies|state-cookies|redirect-loop-guard|tls\/tls-end)\.ts$|^sessions\/(login-sessions|session-middleware)\.ts$|^gateway\/(live-access|cross-origin-login)\.ts$|^servers\/(activity|server-record|server-unit)\.ts$|^singleuser\/(singleuser|activity-report)\.ts$|^authentication\/(login-throttle|upstream-logout|user-admission|account-store|identity-linking|user-refresh)\.ts$/;

/**
 * What decides in a page who may do what, or does it: that is for operations, which pages perform. Of stores, only the
 * shapes of what views answer may be known.
 */
const decisionsInPages: Readonly<Record<string, RegExp>> = {
  'takes a form': /\brouter\.post\(/,
  'checks access': /\b(?:requireAccess|checkAccess)\(/,
  'weighs powers': /\b(?:requireMayActOn|requireMayTakeOver|requireAdminPower)\b/,
  'requires a scope': /\.require\(\s*['"]/,
  'knows a store':
    /\{[^}]*\b(?:create\w+|\w+Store|\w+Pages|StartTimes)\b[^}]*\} from '[^']*-store\.ts'/,
};

/** Pages that decide all the same, and why. */
const decidingPages: Readonly<Record<string, RegExp>> = {
  'it performs operations for all others': /^pages\/forms\/bound-pages\.ts$/,
  'who logs in, is invited or sets the hub up is no caller yet': /^pages\/login\//,
  'it is kept by the browser and concerns nobody else': /^pages\/preference-routes\.ts$/,
  'it draws the frame of every page': /^pages\/(page-context|announcements)\.ts$/,
  'browsers send it reports without a login': /^pages\/servers\/jupyterhub-routes\.ts$/,
  'it asks what the server guard asks before each request':
    /^pages\/servers\/open-server-routes\.ts$/,
  'it leads on, and finds the name of a server in a path':
    /^pages\/servers\/(user-url-routes|landing)\.ts$/,
};

/** Where accounts, their tokens, logins and waits are kept: commands have operations performed instead. */
const accountStores =
  /^(?:users|sessions|oauth)\/.*-store\.ts$|^accounts\/|^authentication\/(?:account-passwords|login-throttle)\.ts$/;

/** Commands that read there all the same, and why. */
const readingCommands: Readonly<Record<string, RegExp>> = {
  'a key that was pressed waits for no hub': /^cli\/list-completions\.ts$/,
  'it says of whom there are no logs': /^cli\/find-program\.ts$/,
  'it counts logins whether or not a hub runs': /^cli\/status-report\.ts$/,
};

const maxFileLines = 400;

const builtInSpawners = [
  'plugins/docker.ts',
  'plugins/kubernetes.ts',
  'plugins/local-process.ts',
  'plugins/slurm.ts',
];

const root = posix.join(import.meta.dirname, '..');

interface SourceFile {
  /** Relative to `src`. */
  readonly path: string;
  readonly text: string;
}

function sourceFiles(): SourceFile[] {
  return globSync('**/*.ts', { cwd: posix.join(root, 'src') })
    .filter((path) => !path.endsWith('.test.ts'))
    .map((path) => ({ path, text: readFileSync(posix.join(root, 'src', path), 'utf8') }));
}

/** Everything a file imports or exports from elsewhere: values, types, and at run time. */
function importsOf(text: string): string[] {
  const code = withoutComments(text);
  const specifiers = [
    ...code.matchAll(/^\s*(?:import|export)\b[^'";]*?\bfrom\s+'([^']+)'/gm),
    ...code.matchAll(/^\s*import\s+'([^']+)'/gm),
    ...code.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g),
  ];
  return specifiers.map(([, specifier = '']) => specifier);
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '');
}

/** A folder of a wing, the wing where it is not divided, or a program. */
function placeOf(path: string): string {
  const places = floors.flat().filter((place) => path === place || path.startsWith(`${place}/`));
  return places.toSorted((left, right) => right.length - left.length)[0] ?? path;
}

function wingOf(place: string): string {
  return place.split('/')[0] ?? place;
}

/** The path as its wing sees it: `pages/html.ts` for `entrances/pages/html.ts`. */
function inWing(path: string): string {
  return placeOf(path).includes('/') ? path.slice(path.indexOf('/') + 1) : path;
}

function floorOf(place: string): number {
  return floors.findIndex((floor) => floor.includes(place));
}

function floorProblems({ path, text }: SourceFile): string[] {
  const place = placeOf(path);
  if (floorOf(place) === -1) return [`${path} stands on no floor`];
  return importsOf(text).flatMap((specifier) => {
    if (!specifier.startsWith('.')) return [];
    const target = posix.join(posix.dirname(path), specifier);
    if (target.startsWith('../')) return [`${path} imports ${specifier} from outside src`];
    const other = placeOf(target);
    if (other === place || (floorOf(other) !== -1 && floorOf(other) < floorOf(place))) return [];
    return [`${path} imports ${target}`];
  });
}

function packageProblems({ path, text }: SourceFile): string[] {
  return importsOf(text).flatMap((specifier) => {
    const places = packagePlaces[specifier];
    return places === undefined || places.test(inWing(path))
      ? []
      : [`${path} imports ${specifier}`];
  });
}

function processProblems({ path, text }: SourceFile): string[] {
  if (processPlaces.test(inWing(path))) return [];
  const code = withoutComments(text);
  const [, imported = ''] = /import \{([^}]*)\} from 'node:process'/.exec(code) ?? [];
  const members = [
    ...imported.split(',').map((name) => name.trim().split(' ')[0] ?? ''),
    ...[...code.matchAll(/(?<![.\w'-])process\.(\w+)/g)].map(([, member = '']) => member),
  ];
  return members
    .filter((member) => processMembers.test(member))
    .map((member) => `${path} uses process.${member}`);
}

function wallClockProblems({ path, text }: SourceFile): string[] {
  const isUsed = /Date\.now\b|new Date\(\)/.test(withoutComments(text));
  return isUsed && !wallClockPlaces.test(inWing(path)) ? [`${path} asks for the time of day`] : [];
}

/** A circle of imports among files of the program, types included; undefined where there is none. */
function circleIn(files: readonly SourceFile[]): string[] | undefined {
  const imports = new Map(
    files.map(({ path, text }) => [
      path,
      importsOf(text)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => posix.join(posix.dirname(path), specifier)),
    ]),
  );
  const finished = new Set<string>();

  function visit(path: string, trail: readonly string[]): string[] | undefined {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (finished.has(path)) return undefined;
    for (const target of imports.get(path) ?? []) {
      const circle = visit(target, [...trail, path]);
      if (circle !== undefined) return circle;
    }
    finished.add(path);
    return undefined;
  }

  for (const { path } of files) {
    const circle = visit(path, []);
    if (circle !== undefined) return circle;
  }
  return undefined;
}

test('no file imports itself by way of others, types included', () => {
  expect(circleIn(sourceFiles())).toBeUndefined();
  const planted = [
    { path: 'store/a.ts', text: "import { b } from './b.ts';" },
    { path: 'store/b.ts', text: "import { c } from '../users/c.ts';" },
    { path: 'users/c.ts', text: "import type { B } from '../store/b.ts';" },
  ];
  expect(circleIn(planted)).toEqual(['store/b.ts', 'users/c.ts', 'store/b.ts']);
  expect(circleIn(planted.slice(0, 2))).toBeUndefined();
});

describe('the floors', () => {
  test('are imported downwards only, types included', () => {
    expect(sourceFiles().flatMap(floorProblems)).toEqual([]);
  });

  test('hold every folder of src, and nothing that is not there', () => {
    const files = sourceFiles().map(({ path }) => path);
    expect(files.filter((path) => floorOf(placeOf(path)) === -1)).toEqual([]);
    const places = new Set(files.map(placeOf));
    expect(floors.flat().toSorted()).toEqual([...places].toSorted());
  });

  test('are those of the wings, one wing after the other', () => {
    const inOrder = [...new Set(floors.flat().map(wingOf))];
    expect(inOrder).toEqual([...wings, 'singleuser-main.ts', 'main.ts']);
    const entries = globSync('**/*', { cwd: posix.join(root, 'src'), withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) =>
        posix.relative(posix.join(root, 'src'), posix.join(entry.parentPath, entry.name)),
      );
    expect([...new Set(entries.map(wingOf))].toSorted()).toEqual(
      [...wings, ...programs].toSorted(),
    );
    expect(wings.length + programs.length).toBeLessThanOrEqual(14);
  });

  test('are told apart in every form of import', () => {
    const upward = (text: string) => floorProblems({ path: 'platform/store/some-store.ts', text });
    expect(upward("import type { User } from '../../identity/users/user-store.ts';")).toHaveLength(
      1,
    );
    expect(
      upward("import {\n  type A,\n  b,\n} from '../../identity/oauth/pkce.ts';"),
    ).toHaveLength(1);
    expect(upward("export { b } from '../../composition/hub.ts';")).toHaveLength(1);
    expect(upward("const { b } = await import('../../composition/hub.ts');")).toHaveLength(1);
    expect(upward("import '../../entrances/cli/run-cli.ts';")).toHaveLength(1);
    expect(upward("import { HubError } from '../errors.ts';\nimport './tables.ts';")).toEqual([]);
  });
});

test('durations are measured by a clock that cannot be set', () => {
  expect(sourceFiles().flatMap(wallClockProblems)).toEqual([]);
  const text = 'const deadline = Date.now() + patienceMs;';
  expect(wallClockProblems({ path: 'traffic/proxy/forwarder.ts', text })).toHaveLength(1);
});

describe('what one part alone may know', () => {
  test('is HTTP by Koa, SQL by Kysely and SQLite, and the command line by Commander', () => {
    expect(sourceFiles().flatMap(packageProblems)).toEqual([]);
    const domain = {
      path: 'identity/rbac/authorizer.ts',
      text: "import type { Context } from 'koa';",
    };
    expect(packageProblems(domain)).toEqual(['identity/rbac/authorizer.ts imports koa']);
  });

  test('is the process, its environment and its arguments', () => {
    expect(sourceFiles().flatMap(processProblems)).toEqual([]);
    const domain = {
      path: 'identity/users/user-store.ts',
      text: 'const home = process.env["HOME"];',
    };
    expect(processProblems(domain)).toEqual(['identity/users/user-store.ts uses process.env']);
    const named = { ...domain, text: "import { exit, kill } from 'node:process';" };
    expect(processProblems(named)).toEqual(['identity/users/user-store.ts uses process.exit']);
  });

  test('is the published contract, for plugins and examples', () => {
    // What several of them share is in plugins/external.
    const allowed =
      /^(hub\/(client|plugin|testing)$|(\.\.\/)+src\/plugin\/plugin\.ts$|node:|\.\/|\.\.\/external\/|[a-z@])/;
    const files = globSync(['plugins/**/*.ts', 'examples/**/*.ts'], { cwd: root });
    const problems = files
      // The names of built-in spawners among the plugins; what they do is part of the program.
      .filter((file) => !file.endsWith('.test.ts') && !builtInSpawners.includes(file))
      .flatMap((file) =>
        importsOf(readFileSync(posix.join(root, file), 'utf8'))
          .filter((specifier) => !allowed.test(specifier))
          .map((specifier) => `${file} imports ${specifier}`),
      );
    expect(problems).toEqual([]);
  });
});

function decisionsIn({ path, text }: SourceFile): string[] {
  if (!inWing(path).startsWith('pages/')) return [];
  if (Object.values(decidingPages).some((places) => places.test(inWing(path)))) return [];
  const code = withoutComments(text);
  return Object.entries(decisionsInPages)
    .filter(([, pattern]) => pattern.test(code))
    .map(([what]) => `${path} ${what}`);
}

test('pages perform operations, which alone decide who may do what', () => {
  expect(sourceFiles().flatMap(decisionsIn)).toEqual([]);
  const path = 'entrances/pages/admin/some-routes.ts';
  for (const text of [
    "router.post('/admin/some', pages.loggedIn(async (ctx) => remove(ctx)));",
    "requireAccess(scopes, ['groups'], membership);",
    "return checkAccess(scopes, 'groups', undefined, membership) === 'granted';",
    'await acting.requireMayActOn(caller, user, scopes);',
    "who.require('admin:users');",
    "import type { User, UserStore } from '../../users/user-store.ts';",
  ]) {
    expect(decisionsIn({ path, text }), text).toHaveLength(1);
  }
  const shape = "import type { User } from '../../users/user-store.ts';";
  expect(decisionsIn({ path, text: shape })).toEqual([]);
});

function storesInCommand({ path, text }: SourceFile): string[] {
  if (!path.startsWith('cli/')) return [];
  if (Object.values(readingCommands).some((places) => places.test(inWing(path)))) return [];
  return importsOf(text)
    .map((specifier) => posix.join(posix.dirname(path), specifier))
    .filter((target) => accountStores.test(target))
    .map((target) => `${path} imports ${target}`);
}

test('commands perform operations, and know no store of accounts', () => {
  expect(sourceFiles().flatMap(storesInCommand)).toEqual([]);
  const path = 'cli/some-command.ts';
  for (const store of [
    'users/user-store',
    'oauth/tokens/access-token-store',
    'accounts/accounts',
    'authentication/login-throttle',
  ]) {
    const text = `const { open } = await import('../${store}.ts');`;
    expect(storesInCommand({ path, text })).toEqual([`${path} imports ${store}.ts`]);
  }
});

test(`no file of the program is longer than ${maxFileLines} lines`, () => {
  const files = globSync(['src/**/*.ts', 'plugins/**/*.ts', 'examples/**/*.ts'], { cwd: root });
  const long = files
    .filter((file) => !file.endsWith('.test.ts'))
    .map((file) => ({
      file,
      lines: readFileSync(posix.join(root, file), 'utf8').split('\n').length - 1,
    }))
    .filter(({ lines }) => lines > maxFileLines);
  expect(long).toEqual([]);
});

test('no file of the program exports a default, but a plugin', () => {
  const withDefault = sourceFiles().filter(({ text }) => /^export default\b/m.test(text));
  expect(withDefault.map(({ path }) => path)).toEqual([]);
});
