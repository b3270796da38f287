import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createLiveConnections, type LiveConnection } from './live-connections.ts';
import { createRoute } from './route.ts';

const route = createRoute(
  { prefix: '/a/', target: 'http://127.0.0.1:1', access: 'public', owner: { kind: 'extra' } },
  0,
);

function connection(userName: string): LiveConnection & { closed: string[] } {
  const closed: string[] = [];
  return {
    kind: 'http',
    tags: { route, userName },
    closed,
    close: (reason) => closed.push(reason),
    endStream() {},
  };
}

describe('the registry of live connections', () => {
  test('holds what was added and not removed, in whatever order that happens', () => {
    const steps = fc.array(fc.record({ add: fc.boolean(), index: fc.nat({ max: 9 }) }));
    fc.assert(
      fc.property(steps, (chosen) => {
        const all = Array.from({ length: 10 }, (_, index) => connection(`u${index}`));
        const expected = new Set<LiveConnection>();
        const registry = createLiveConnections();
        for (const { add, index } of chosen) {
          const one = all[index]!;
          if (add) {
            registry.add(one);
            expected.add(one);
          } else {
            registry.delete(one);
            expected.delete(one);
          }
          expect(registry.size).toBe(expected.size);
          expect(new Set(registry.list())).toEqual(expected);
        }
      }),
    );
  });

  test('closes each connection that is picked once, though closing removes it', () => {
    const registry = createLiveConnections();
    const mine = Array.from({ length: 5 }, () => {
      const one = connection('alice');
      one.close = (reason) => {
        one.closed.push(reason);
        registry.delete(one);
      };
      registry.add(one);
      return one;
    });
    const other = connection('bob');
    registry.add(other);
    expect(registry.closeWhere(({ userName }) => userName === 'alice', 'session_ended')).toBe(5);
    expect(mine.map(({ closed }) => closed)).toEqual(Array(5).fill(['session_ended']));
    expect([...registry.list()]).toEqual([other]);
  });
});
