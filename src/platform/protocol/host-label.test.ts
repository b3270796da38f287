import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/properties.ts';
import { serviceHostLabel, userHostLabel } from './host-label.ts';

test.each([
  ['alice', 'alice'],
  ['a', 'a'],
  ['a-b-2', 'a-b-2'],
  ['7', '7'],
  ['u-alice', 'u-alice'],
  ['x'.repeat(63), 'x'.repeat(63)],
])('the user %s has the label %s', (name, label) => {
  expect(userHostLabel(name)).toBe(label);
});

test.each([
  ['wiki', 'wiki--service'],
  ['www', 'www--service'],
  ['x'.repeat(54), `${'x'.repeat(54)}--service`],
])('the service %s has the label %s', (name, label) => {
  expect(serviceHostLabel(name)).toBe(label);
});

test.each([
  ['Alice', /^u-alice--[a-z2-7]{26}$/],
  ['alice@example.org', /^u-alice-example-org--[a-z2-7]{26}$/],
  ['a.b', /^u-a-b--[a-z2-7]{26}$/],
  ['zoë', /^u-zo--[a-z2-7]{26}$/],
  ['名前', /^u-x--[a-z2-7]{26}$/],
  ['-', /^u-x--[a-z2-7]{26}$/],
  ['-a', /^u-a--[a-z2-7]{26}$/],
  ['xn--bcher-kva', /^u-xn-bcher-kva--[a-z2-7]{26}$/],
  ['wiki--service', /^u-wiki-service--[a-z2-7]{26}$/],
  ['www', /^u-www--[a-z2-7]{26}$/],
  ['hub', /^u-hub--[a-z2-7]{26}$/],
  ['x'.repeat(64), /^u-x{20}--[a-z2-7]{26}$/],
  ['ü'.repeat(255), /^u-x--[a-z2-7]{26}$/],
])('the user %s has an escaped label', (name, label) => {
  expect(userHostLabel(name)).toMatch(label);
});

test.each([
  ['xn', /^s-xn--[a-z2-7]{26}--service$/],
  ['Wiki', /^s-wiki--[a-z2-7]{26}--service$/],
  ['a.b', /^s-a-b--[a-z2-7]{26}--service$/],
  ['x'.repeat(55), /^s-x{20}--[a-z2-7]{26}--service$/],
])('the service %s has an escaped label', (name, label) => {
  expect(serviceHostLabel(name)).toMatch(label);
});

test('a user whose name is the label of the hub has another one', () => {
  expect(userHostLabel('portal')).toBe('portal');
  expect(userHostLabel('portal', 'portal')).toMatch(/^u-portal--/);
});

test('the escaped label of a name stays the same from version to version', () => {
  expect(userHostLabel('Alice')).toBe('u-alice--hpcrayuxhrcy2wtpfwgwjibder');
});

describe('for any names', () => {
  const piece = fc.constantFrom(
    ...[
      'a',
      'b',
      '-',
      '--',
      '.',
      'A',
      'é',
      'xn--',
      'u-',
      's-',
      '--service',
      'www',
      'hub',
      '_',
      ' ',
    ],
  );
  const tricky = fc
    .array(piece, { minLength: 1, maxLength: 6 })
    .map((parts) => parts.join('').normalize('NFC'));
  const anything = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 255 });
  const userName = fc.oneof(tricky, anything);
  const labelOf = fc.oneof(
    userName.map((name) => ({ key: `user ${name}`, label: userHostLabel(name) })),
    userName.map((name) => ({ key: `service ${name}`, label: serviceHostLabel(name) })),
    // What was made for one name is a name that another may choose.
    userName.map((name) => {
      const copied = userHostLabel(name);
      return { key: `user ${copied}`, label: userHostLabel(copied) };
    }),
    userName.map((name) => {
      const copied = serviceHostLabel(name);
      return { key: `user ${copied}`, label: userHostLabel(copied) };
    }),
    userName.map((name) => {
      const copied = serviceHostLabel(name).slice(0, -'--service'.length);
      return { key: `service ${copied}`, label: serviceHostLabel(copied) };
    }),
  );

  test('a label is one that every resolver and browser takes as it is', () => {
    fc.assert(
      fc.property(labelOf, ({ label }) => {
        expect(label).toMatch(/^(?=.{1,63}$)[a-z0-9]+(?:-+[a-z0-9]+)*$/);
        // RFC 5890 §2.3.1: reserved
        expect(label.slice(2, 4)).not.toBe('--');
        expect(new URL(`https://${label}.hub.example.org/`).hostname).toBe(
          `${label}.hub.example.org`,
        );
      }),
      runs(2_000),
    );
  });

  test('no two have one label', () => {
    fc.assert(
      fc.property(fc.array(labelOf, { maxLength: 40 }), (all) => {
        const keys = new Set(all.map(({ key }) => key));
        expect(new Set(all.map(({ label }) => label)).size).toBe(keys.size);
      }),
      runs(1_000),
    );
  });

  test('only services have labels that end in --service', () => {
    fc.assert(
      fc.property(userName, (name) => {
        expect(userHostLabel(name)).not.toMatch(/--service$/);
        expect(serviceHostLabel(name)).toMatch(/--service$/);
      }),
    );
  });
});
