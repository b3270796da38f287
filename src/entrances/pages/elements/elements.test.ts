import { describe, expect, test } from 'vitest';
import { english } from '../../../platform/texts/language.ts';
import { loadLanguages } from '../../../platform/texts/languages.ts';
import { createPageUrls } from '../page-urls.ts';
import { addressElement } from './address.ts';
import { deviceName } from './device.ts';
import { hiddenFields, textField } from './form.ts';
import {
  beforeNow,
  duration,
  formatBytes,
  formatCpu,
  relativeTime,
  timeElement,
} from './quantity.ts';
import { table } from './table.ts';

const now = new Date('2026-11-20T10:00:00Z');
const inSeconds = (seconds: number): Date => new Date(now.getTime() + seconds * 1000);

describe('relative time', () => {
  test.for([
    [0, 'just now'],
    [-59, 'just now'],
    [59, 'in less than a minute'],
    [-60, '1 minute ago'],
    [-3599, '59 minutes ago'],
    [-3600, '1 hour ago'],
    [7200, 'in 2 hours'],
    // What was just made for an hour, or a month, and is shown a moment later.
    [3598, 'in 1 hour'],
    [30 * 86_400 - 2, 'in 30 days'],
    [5399, 'in 1 hour'],
    [-86_400, '1 day ago'],
    [55 * 86_400, 'in 55 days'],
    [-90 * 86_400, '2 months ago'],
    [-800 * 86_400, '2 years ago'],
  ] as const)('%i seconds from now is “%s”', ([seconds, words]) => {
    expect(String(relativeTime(inSeconds(seconds), now))).toBe(words);
  });

  test('keeps the exact time for machines and as a tooltip', () => {
    expect(String(timeElement(inSeconds(-60), now))).toBe(
      '<time datetime="2026-11-20T09:59:00.0Z" title="2026-11-20 09:59 UTC">1 minute ago</time>',
    );
  });

  test.for([
    [1, '1 second'],
    [45, '45 seconds'],
    [90, '2 minutes'],
    [86_400, '1 day'],
  ] as const)('%i seconds last %s', ([seconds, words]) => {
    expect(String(duration(seconds))).toBe(words);
  });
});

test('a length of time before now has the case that its language wants', async () => {
  const german = (await loadLanguages()).find('de') ?? english;
  expect(String(beforeNow(7_200))).toBe('2 hours ago');
  expect(beforeNow(3 * 86_400).in(german)).toBe('vor 3 Tagen');
});

describe('the name of a device', () => {
  test.for([
    ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
    [
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0',
      'Edge on Windows',
    ],
    [
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Safari/605.1.15',
      'Safari on Mac',
    ],
    [
      'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36',
      'Chrome on Android',
    ],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile Safari/604.1',
      'Chrome on iPhone',
    ],
    ['curl/8.14.1', 'curl'],
    ['', 'Unknown device'],
  ] as const)('%s is %s', ([userAgent, name]) => {
    expect(String(deviceName(userAgent))).toBe(name);
  });
});

describe('quantities', () => {
  test.for([
    [0, '0 B'],
    [999, '999 B'],
    [1500, '1.5 kB'],
    [131_072_000, '131 MB'],
    [2_400_000_000, '2.4 GB'],
  ] as const)('%i bytes are %s', ([bytes, words]) => {
    expect(String(formatBytes(bytes))).toBe(words);
  });

  test('CPU is a percentage of one core', () => {
    expect(String(formatCpu(0.034))).toBe('3.4 %');
    expect(String(formatCpu(2.5))).toBe('250 %');
  });
});

describe('fields', () => {
  test('a password is never written into the page', () => {
    expect(
      String(textField({ name: 'p', label: 'P', type: 'password', value: 'hunter2' })),
    ).not.toContain('hunter2');
  });

  test('a problem and the help describe the field', () => {
    const field = String(textField({ name: 'a', label: 'A', help: 'Help.', problem: 'Wrong.' }));
    expect(field).toContain('aria-invalid="true" aria-describedby="field-a-problem field-a-help"');
  });

  test('an optional field is not required and says so', () => {
    const field = String(textField({ name: 'a', label: 'A', isOptional: true }));
    expect(field).toContain('(optional)');
    expect(field).not.toContain('required');
  });

  test('hidden fields leave out what is undefined and repeat a list', () => {
    expect(String(hiddenFields({ a: '1', b: undefined, c: ['x', 'y'] }))).toBe(
      '<input type="hidden" name="a" value="1"><input type="hidden" name="c" value="x"><input type="hidden" name="c" value="y">',
    );
  });
});

test('a table tells each cell its column, for narrow screens', () => {
  const page = String(table('Things', [{ label: 'Size', cell: (size: number) => size }], [3]));
  expect(page).toContain('<td data-label="Size"><div>3</div></td>');
  expect(page).toContain('<caption class="visually-hidden">Things</caption>');
});

describe('page addresses', () => {
  const urls = createPageUrls('/team/');

  test('stand below the base URL', () => {
    expect(urls.home).toBe('/team/hub/home');
    expect(urls.spawn('alice')).toBe('/team/hub/spawn/alice');
    expect(urls.spawn('alice', '')).toBe('/team/hub/spawn/alice');
    expect(urls.stop('alice', 'thesis')).toBe('/team/hub/stop/alice/thesis');
  });

  test('encode names', () => {
    expect(urls.adminUser('a/../b?c', 'delete')).toBe(
      '/team/hub/admin/users/a%2F..%2Fb%3Fc/delete',
    );
    expect(urls.loginWith('sso', '/x?y=1')).toBe('/team/hub/login/with/sso?next=%2Fx%3Fy%3D1');
  });
});

test('an address breaks before its port and after its slashes only', () => {
  expect(String(addressElement('http://127.0.0.1:9000/a/b'))).toBe(
    '<code>http://127.0.0.1<wbr>:9000/<wbr>a/<wbr>b</code>',
  );
  expect(String(addressElement('http+unix://%2Frun%2Fx.sock'))).toBe(
    '<code>/run/<wbr>x.sock</code>',
  );
  expect(String(addressElement('http://a/<b>'))).toContain('&lt;b&gt;');
});
