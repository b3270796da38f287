import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { cell, code, generatedNote } from './markdown.ts';

const chart = join(import.meta.dirname, '../../deploy/helm/hub');

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}

type Values = Readonly<Record<string, unknown>>;

/** A value of the chart: where it stands, what it is by default and what it means. */
export interface ValueRow {
  readonly path: string;
  readonly fallback: unknown;
  readonly meaning: string;
}

/** Every value that the schema of the chart knows. */
export function listHelmValues(): readonly ValueRow[] {
  const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')) as Schema;
  const values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as Values;
  return rowsOf(schema, values, '');
}

function rowsOf({ properties = {} }: Schema, values: Values, prefix: string): ValueRow[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const path = prefix + name;
    const fallback = values[name];
    if (schema.properties !== undefined) {
      return rowsOf(schema, (fallback ?? {}) as Values, `${path}.`);
    }
    return [{ path, fallback, meaning: schema.description ?? '' }];
  });
}

/** Longer defaults are read in values.yaml. */
const maxDefaultLength = 40;

function showDefault(value: unknown): string {
  if (value === undefined || value === '') return '';
  const text = JSON.stringify(value);
  return text.length > maxDefaultLength ? 'see values.yaml' : code(text);
}

export function helmValuesPage(): string {
  const rows = listHelmValues().map(
    ({ path, fallback, meaning }) =>
      `| ${code(path)} | ${showDefault(fallback)} | ${cell(meaning)} |`,
  );
  return `${generatedNote}

# Values of the Helm chart

The chart is in [deploy/helm/hub](../../deploy/helm/hub). [Deploy on Kubernetes](../how-to/deploy-on-kubernetes.md) says
how to use it.

| value | default | meaning |
|---|---|---|
${rows.join('\n')}
`;
}
