import { describe, expect, test } from 'vitest';
import { canonicalPath } from '../../platform/http/request-address.ts';
import type { Route, RouteDefinition } from './route.ts';
import { createRouteTable } from './route-table.ts';

const extra = (prefix: string, target = 'http://127.0.0.1:9/'): RouteDefinition => ({
  prefix,
  target,
  access: 'public',
  owner: { kind: 'extra' },
});

function tableWith(...prefixes: string[]) {
  const table = createRouteTable({ reservedPrefixes: ['/hub/'], now: () => 1000 });
  for (const prefix of prefixes) table.add(extra(prefix));
  return {
    ...table,
    match(target: string, host?: string) {
      const path = canonicalPath(target);
      if (path === undefined) throw new Error(`${target} is not canonical`);
      const match = table.match(path, host);
      if (match === undefined || !('route' in match)) return match?.kind ?? 'none';
      return `${match.kind} ${match.route.prefix} ${match.path}`;
    },
  };
}

describe('match', () => {
  const table = tableWith(
    '/user/a/',
    '/user/a/srv/',
    '/user/jos%C3%A9/',
    '/user/x%40y/',
    '/services/whoami/',
  );

  test.for([
    ['/user/a/', 'forward /user/a/ /user/a/'],
    ['/user/a/x/y?z=1', 'forward /user/a/ /user/a/x/y?z=1'],
    ['/user/a/srv/x', 'forward /user/a/srv/ /user/a/srv/x'],
    ['/user/a/srvx', 'forward /user/a/ /user/a/srvx'],
    ['/user/ab/', 'none'],
    ['/User/a/', 'none'],
    ['/user/', 'none'],
    ['/', 'none'],
    ['/hub/api', 'none'],
    ['/__proto__/x', 'none'],
    ['/constructor', 'none'],
    ['/user/toString/', 'none'],
  ] as const)('takes the longest prefix of whole segments: %s', ([target, expected]) => {
    expect(table.match(target)).toBe(expected);
  });

  test.for([
    ['/services/%77hoami/x', '/services/whoami/x'],
    ['/services/who%61mi/%78?q=%20', '/services/whoami/%78?q=%20'],
    ['/%75ser/jos%c3%a9/x', '/user/jos%C3%A9/x'],
    ['/user/x@y/z', '/user/x%40y/z'],
    ['/user/x%40y/z', '/user/x%40y/z'],
  ] as const)('forwards %s under the prefix as the hub wrote it', ([target, path]) => {
    expect(table.match(target)).toContain(` ${path}`);
  });

  test.for([
    ['/user/a?x=1', 'redirect /user/a/ /user/a/?x=1'],
    ['/services/%77hoami', 'redirect /services/whoami/ /services/whoami/'],
    ['/user/a/srv', 'redirect /user/a/srv/ /user/a/srv/'],
  ] as const)('redirects %s to the prefix with its slash', ([target, expected]) => {
    expect(table.match(target)).toBe(expected);
  });

  test.for([
    '/user%2fa/x',
    '/user//a/x',
    '/user/%2fa/x',
    '/services/whoami%2fx',
    '/user/a%2fsrv/x',
    '/user/a//srv/x',
    '/user/a/%2fsrv/x',
    '/hub%2fapi/x',
    '/services/whoami%2F',
  ])('calls %s ambiguous where another reading finds another route', (target) => {
    const all = tableWith('/', '/user/a/', '/user/a/srv/', '/services/whoami/');
    expect(all.match(target)).toBe('ambiguous');
  });

  test.for([
    '/user/a/files/x%2fy',
    '/user/a/files//x',
    '/user/a/b//',
    '/services/whoami//x',
    '/services/whoami/%2fx',
  ])('forwards %s as it is, because no other reading finds another route', (target) => {
    expect(table.match(target)).toMatch(/^forward /);
    expect(table.match(target)).toContain(` ${target}`);
  });

  test('keeps the hub out of reach of a route at the root', () => {
    const all = tableWith('/');
    expect(all.match('/hub/login')).toBe('none');
    expect(all.match('/hub')).toBe('none');
    expect(all.match('/hubs')).toBe('forward / /hubs');
    expect(() => all.add(extra('/hub/'))).toThrow(TypeError);
  });

  test('takes no more steps with 10,000 routes than with ten', () => {
    const steps = (size: number) => {
      const grown = createRouteTable();
      for (let index = 0; index < size; index++) grown.add(extra(`/user/u${index}/`));
      const path = canonicalPath('/user/u7/lab/tree/x');
      if (path === undefined) throw new Error('not canonical');
      let lookups = 0;
      const get = Map.prototype.get;
      Map.prototype.get = function counted(this: Map<unknown, unknown>, key: unknown) {
        lookups += 1;
        return get.call(this, key);
      };
      try {
        expect(grown.match(path)).toMatchObject({ kind: 'forward' });
      } finally {
        Map.prototype.get = get;
      }
      return lookups;
    };
    expect(steps(10_000)).toBe(steps(10));
  });
});

describe('changes', () => {
  test('a prefix is taken once, however it is spelt', () => {
    const table = tableWith('/user/x%40y/');
    expect(() => table.add(extra('/user/x@y/'))).toThrow('already');
    expect(table.find('/user/x@y/')?.prefix).toBe('/user/x%40y/');
  });

  test('a replaced route keeps its activity and its former self is announced', () => {
    const table = createRouteTable({ now: () => 5 });
    const removed: Route[] = [];
    const stop = table.onRemove((route) => removed.push(route));
    const former = table.add(extra('/x/', 'http://127.0.0.1:1'));
    former.lastActivityMs = 77;
    const route = table.replace(extra('/x/', 'http://127.0.0.1:2'));
    expect(route).toMatchObject({ lastActivityMs: 77, target: 'http://127.0.0.1:2' });
    expect(table.list()).toEqual([route]);
    expect(removed).toEqual([former]);
    stop();
    expect(table.remove('/x/')).toBe(true);
    expect(table.remove('/x/')).toBe(false);
    expect(removed).toHaveLength(1);
  });

  test('removing a route uncovers the shorter one and leaves its neighbours', () => {
    const table = tableWith('/a/', '/a/b/c/', '/a/b/d/');
    table.remove('/a/b/c/');
    expect(table.match('/a/b/c/x')).toBe('forward /a/ /a/b/c/x');
    expect(table.match('/a/b/d/x')).toBe('forward /a/b/d/ /a/b/d/x');
    table.remove('/a/');
    expect(table.match('/a/x')).toBe('none');
    expect(table.match('/a/b/d/x')).toBe('forward /a/b/d/ /a/b/d/x');
  });

  test.for(['a/', '/a', '', '//', '/a//b/', '/a%2fb/', '/a/../b/', '/a/?x', '/%zz/'])(
    'refuses the prefix %j',
    (prefix) => {
      expect(() => createRouteTable().add(extra(prefix))).toThrow(TypeError);
    },
  );

  test.for([
    'nonsense',
    'file:///etc/passwd',
    'ftp://127.0.0.1/',
    'http://user:secret@127.0.0.1/',
    'http://',
    'http+unix://relative',
    'javascript:alert(1)',
  ])('refuses the target %s', (target) => {
    expect(() => createRouteTable().add(extra('/x/', target))).toThrow(TypeError);
  });

  test('names the token cookie after the OAuth client, as the client itself does', () => {
    const table = createRouteTable();
    const cookieName = (clientId?: string, given?: string) =>
      table.replace({ ...extra('/x/'), clientId, cookieName: given }).cookieName;
    expect(cookieName('service-whoami')).toBe('service-whoami');
    expect(cookieName('service-whoami', 'service-other')).toBe('service-other');
    expect(cookieName('hub-user-a%40b')).toBe('hub-user-a%40b');
    expect(cookieName('service-a b')).toBe('service-a%20b');
    expect(cookieName()).toBeUndefined();
  });
});

describe('routes of a host name', () => {
  const table = tableWith('/a/');
  table.add({ ...extra('/'), host: 'wiki.example' });
  table.add({ ...extra('/a/b/'), host: 'docs.example', stripsPrefix: true });

  test.each([
    ['/a/x', undefined, 'forward /a/ /a/x'],
    ['/a/x', 'other.example', 'forward /a/ /a/x'],
    ['/a/x', 'wiki.example', 'forward / /a/x'],
    ['/hub/login', 'wiki.example', 'forward / /hub/login'],
    ['/a/b/c?d', 'docs.example', 'forward /a/b/ /c?d'],
    ['/a/b', 'docs.example', 'redirect /a/b/ /a/b/'],
    ['/a/x', 'docs.example', 'nowhere'],
    ['/hub/login', 'docs.example', 'nowhere'],
    ['/a/b//evil.example/', 'docs.example', 'ambiguous'],
    ['/a/b/%2fevil.example/', 'docs.example', 'ambiguous'],
  ])('%s at %s', (target, host, expected) => {
    expect(table.match(target, host)).toBe(expected);
  });

  test('are found by host and prefix, and gone with the last', () => {
    const others = tableWith('/a/');
    others.add({ ...extra('/'), host: 'wiki.example' });
    expect(others.find('wiki.example/')?.prefix).toBe('/');
    expect(others.remove('wiki.example/')).toBe(true);
    expect(others.match('/hub/login', 'wiki.example')).toBe('none');
    expect(others.match('/a/', 'wiki.example')).toBe('forward /a/ /a/');
  });
});
