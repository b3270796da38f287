import { expect, test } from 'vitest';
import { budgetsSchema } from './usage-schema.ts';

test.for([
  [{ user: 'a', cpu_hours: 0 }, 'expected number to be >0'],
  [{ user: 'a', cpu_hours: -1 }, 'expected number to be >0'],
  [{ user: 'a', group: 'b', cpu_hours: 1 }, 'must name one of user, group and profile'],
  [{ cpu_hours: 1 }, 'must name one of user, group and profile'],
  [{ user: 'a' }, 'must limit one of server_hours, '],
  [{ user: '*', sharing: 'divided', cost: 1 }, 'can be divided among a group only'],
  [{ user: '*', period: '91d', cost: 1 }, 'must be 90 days at most'],
  [{ user: '*', period: 'year', cost: 1 }, 'must be day, week, month, or a time'],
] as const)('the budget %o is refused', ([budget, problem]) => {
  const { error } = budgetsSchema.safeParse([{ name: 'a', period: 'day', ...budget }]);
  expect(error?.issues.map(({ message }) => message)).toEqual([expect.stringContaining(problem)]);
});
