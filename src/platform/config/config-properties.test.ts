import fc from 'fast-check';
import { expect, test } from 'vitest';
import { useConfigLoading } from '../../../test/support/config-loading.ts';
import { runs } from '../../../test/support/properties.ts';
import { valuesOf } from '../../../test/support/schema-values.ts';
import { createConfigJsonSchema } from './json-schema.ts';

const { problemsOf } = useConfigLoading();
const schema = createConfigJsonSchema();
const names = [
  'ada',
  'team',
  'wiki',
  'http://127.0.0.1:9',
  '/data',
  'local',
  'admin',
  '10.0.0.0/8',
];

test.each([
  ['near to its schema', 2],
  ['far from its schema', 30],
])(
  'a configuration %s is taken, or refused with the place of each problem',
  async (_, junkShare) => {
    const configurations = valuesOf(schema, { document: schema, junkShare, names });
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(configurations, async (configuration) => {
        const problems = await problemsOf(configuration);
        if (problems.length > 0) refused += 1;
        for (const problem of problems) expect(problem).toMatch(/^\S.*: \S|^: \S/);
      }),
      runs(60),
    );
    expect(refused).toBeGreaterThan(0);
  },
);
