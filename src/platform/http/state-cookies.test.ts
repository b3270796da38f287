import { describe, expect, test } from 'vitest';
import { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import { createStateCookies } from './state-cookies.ts';

const sealer = createSealer([new Secret('a key for this test')], 'test');
const attributes = { path: '/services/x/', secure: true };
const cookies = createStateCookies<{ readonly next?: string | undefined; readonly nonce: string }>(
  sealer,
  'app-state',
);

/** A browser's cookies of one path. */
class Jar {
  readonly #values = new Map<string, string>();

  take(setCookies: readonly string[]): this {
    for (const line of setCookies) {
      const [pair = ''] = line.split(';', 1);
      const name = pair.slice(0, pair.indexOf('='));
      if (line.includes('Max-Age=0')) this.#values.delete(name);
      else this.#values.set(name, pair.slice(name.length + 1));
    }
    return this;
  }

  get size(): number {
    return this.#values.size;
  }

  header(): string {
    return [...this.#values].map(([name, value]) => `${name}=${value}`).join('; ');
  }
}

const begin = (jar: Jar, state: string, next = '/page', header = jar.header()) =>
  jar.take(cookies.begin(header, state, { next, nonce: `nonce of ${state}` }, attributes));

describe('a login under way', () => {
  test('is found by its state, in the browser that began it, until it ends', () => {
    const jar = begin(new Jar(), 'one');
    expect(cookies.find(jar.header(), 'one')).toEqual({ next: '/page', nonce: 'nonce of one' });
    expect(cookies.find(jar.header(), 'two')).toBeUndefined();
    expect(cookies.find(undefined, 'one')).toBeUndefined();
    jar.take(cookies.end('one', attributes));
    expect(jar.size).toBe(0);
  });

  test('leaves alone another that began at the same moment, before either cookie came back', () => {
    const jar = new Jar();
    for (const state of ['one', 'two', 'three']) begin(jar, state, `/${state}`, '');
    for (const state of ['one', 'two', 'three']) {
      expect(cookies.find(jar.header(), state)?.next).toBe(`/${state}`);
    }
  });

  test('is not found by the cookie of another, renamed', () => {
    const [mine = ''] = begin(new Jar(), 'mine').header().split('=').slice(1);
    const [name = ''] = begin(new Jar(), 'other').header().split('=');
    expect(cookies.find(`${name}=${mine}`, 'other')).toBeUndefined();
    expect(cookies.find(`${name}=${mine}`, 'mine')).toBeUndefined();
  });

  test('is found behind cookies of the same name that another site planted', () => {
    const header = begin(new Jar(), 'one').header();
    const [name = ''] = header.split('=');
    expect(cookies.find(`${name}=planted; ${name}=; ${header}`, 'one')).toBeDefined();
  });

  test('is over after ten minutes, whatever the browser keeps', () => {
    const header = begin(new Jar(), 'one').header();
    const elevenMinutesLater = createStateCookies(
      { ...sealer, open: (sealed, context) => aged(sealer.open(sealed, context)) },
      'app-state',
    );
    expect(elevenMinutesLater.find(header, 'one')).toBeUndefined();
  });
});

describe('logins under way together', () => {
  test('are at most eight, and the oldest gives way', () => {
    const jar = new Jar();
    const states = Array.from({ length: 12 }, (_, index) => `state ${index}`);
    for (const state of states) begin(jar, state);
    expect(jar.size).toBe(8);
    expect(cookies.find(jar.header(), 'state 11')).toBeDefined();
  });

  test('take no more room than a request has, with a place for a page of any length', () => {
    const jar = new Jar();
    for (let index = 0; index < 8; index += 1) {
      begin(jar, `state ${index}`, `/${'x'.repeat(1_500)}`);
      expect(jar.header().length).toBeLessThan(6_100);
    }
    begin(jar, 'last', `/${'y'.repeat(5_000)}`);
    expect(cookies.find(jar.header(), 'last')).toEqual({ nonce: 'nonce of last' });
  });

  test('give up what they cannot read first', () => {
    const jar = begin(new Jar(), 'one');
    const foreign = `app-state-${'f'.repeat(16)}=foreign`;
    const dropped = cookies.begin(`${foreign}; ${jar.header()}`, 'two', { nonce: '' }, attributes);
    expect(dropped.filter((line) => line.includes('Max-Age=0'))).toHaveLength(1);
    expect(dropped[0]).toMatch(/^app-state-f{16}=;/);
  });
});

function aged(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const sealed = JSON.parse(text) as { startedAtMs: number };
  return JSON.stringify({ ...sealed, startedAtMs: sealed.startedAtMs - 660_000 });
}
