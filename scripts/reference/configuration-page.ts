import { createConfigJsonSchema } from '../../src/platform/config/json-schema.ts';
import {
  builtInPluginsDirectory,
  createPluginLoader,
} from '../../src/plugin/host/plugin-loader.ts';
import { cell, code, generatedNote } from './markdown.ts';

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema | boolean;
}

/** One setting: where it stands, and what may stand there. */
export interface SettingRow {
  /** Dotted, `[]` for an entry of a list, `*` for a name of your choice. */
  readonly path: string;
  readonly type: string;
  readonly fallback: string;
  readonly meaning: string;
}

const introductions: Readonly<Record<string, string>> = {
  Hub: 'The hub itself: addresses, storage, services, roles.',
  Authenticator: 'Who may log in, whatever the way in. Each way in has a section of its own below.',
  Spawner: "Users' servers.",
  Proxy: 'Limits of the gateway, and routes of your own.',
};

/** Every setting there is, plugins included, by section. */
export async function listSettings(): Promise<ReadonlyMap<string, readonly SettingRow[]>> {
  const { plugins } = await createPluginLoader([builtInPluginsDirectory]).list();
  const schema = createConfigJsonSchema(plugins.map(({ plugin }) => plugin)) as JsonSchema;
  const sections = Object.entries(schema.properties ?? {}).filter(([name]) => name !== '$schema');
  return new Map(
    sections.map(([name, section]) => [name, propertiesOf(section, name).flatMap(toRows)]),
  );
}

interface Property {
  readonly path: string;
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

function propertiesOf(schema: JsonSchema, path: string): Property[] {
  return Object.entries(schema.properties ?? {}).map(([key, property]) => ({
    path: `${path}.${key}`,
    schema: property,
    isRequired: schema.required?.includes(key) === true && property.default === undefined,
  }));
}

function toRows({ path, schema, isRequired }: Property): SettingRow[] {
  const row = {
    path,
    type: typeOf(schema),
    fallback: isRequired ? 'required' : defaultOf(schema),
    meaning: schema.description ?? '',
  };
  return [row, ...innerProperties(schema, path).flatMap(toRows)];
}

/** The settings inside a list or a map, where these hold objects. */
function innerProperties(schema: JsonSchema, path: string): Property[] {
  const alternatives = [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  const found = new Map<string, Property>();
  for (const { items, additionalProperties } of alternatives) {
    const inner: [string, JsonSchema][] = [];
    if (items !== undefined) inner.push([`${path}[]`, items]);
    if (typeof additionalProperties === 'object') inner.push([`${path}.*`, additionalProperties]);
    for (const [innerPath, innerSchema] of inner) {
      for (const each of [innerSchema, ...(innerSchema.anyOf ?? [])]) {
        if (isSecretReference(each)) continue;
        for (const property of propertiesOf(each, innerPath)) found.set(property.path, property);
      }
    }
  }
  return [...found.values()];
}

function isSecretReference({ properties = {} }: JsonSchema): boolean {
  const keys = Object.keys(properties);
  return keys.length === 1 && (keys[0] === 'env' || keys[0] === 'file');
}

function typeOf(schema: JsonSchema): string {
  const { anyOf, oneOf, items, additionalProperties, properties, type } = schema;
  if (schema.enum !== undefined)
    return schema.enum.map((value) => code(JSON.stringify(value))).join(', ');
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (isSecretReference(schema)) return 'secret';
  const alternatives = anyOf ?? oneOf;
  if (alternatives !== undefined) {
    const types = [...new Set(alternatives.map(typeOf))];
    return types.includes('secret')
      ? [...types.filter((each) => each !== 'secret'), '[secret](#secrets)'].join(' or ')
      : types.join(' or ');
  }
  if (items !== undefined) return `list of ${plural(typeOf(items))}`;
  if (properties !== undefined && Object.keys(properties).length > 0) return 'object';
  if (typeof additionalProperties === 'object') return `map to ${typeOf(additionalProperties)}`;
  const words: Readonly<Record<string, string>> = {
    string: 'text',
    integer: 'whole number',
    number: 'number',
    boolean: 'true or false',
    object: 'map',
    array: 'list',
  };
  return [type ?? 'anything']
    .flat()
    .map((name) => words[name] ?? name)
    .join(' or ');
}

function plural(type: string): string {
  return type === 'object' ? 'objects' : type;
}

function defaultOf({ default: value }: JsonSchema): string {
  return value === undefined ? '' : code(JSON.stringify(value));
}

/** The reference page of the configuration. */
export async function configurationPage(): Promise<string> {
  const sections = [...(await listSettings())].map(([name, rows]) => {
    const lines = rows.map(
      ({ path, type, fallback, meaning }) =>
        `| ${code(path)} | ${cell(type)} | ${cell(fallback)} | ${cell(meaning)} |`,
    );
    const introduction =
      introductions[name] ?? `Options of the plugin that this section belongs to.`;
    const table = ['| setting | type | default | meaning |', '|---|---|---|---|', ...lines];
    return `## ${name}\n\n${introduction}\n\n${table.join('\n')}\n`;
  });
  return `# Configuration

${generatedNote}

The hub reads one file: the one that \`--config\` names, else \`hub.config.json\`, else
\`hub.config.example.json\` in the folder it is started in. It is JSON in which comments and trailing commas
are allowed. Relative paths in it are relative to its folder. Unknown settings, wrong types and
contradictions are all reported at once, each with its path, and the hub does not start; \`hub check\` says the
same without starting anything. With \`"$schema": "./hub.schema.json"\` an editor completes and checks the
file; \`hub schema\` prints that schema.

A path such as \`Hub.services[].name\` means the key \`name\` of each entry of the list \`Hub.services\`; a
star stands for a name of your choice. An empty default means: not set.

## Secrets

Wherever a secret may stand, it can be given in one of three ways:

| form | meaning |
|---|---|
| \`"text"\` | the secret itself, best kept for trials |
| \`{"env": "NAME"}\` | the environment variable \`NAME\` of the hub, which is not passed on to its children |
| \`{"file": "path"}\` | the content of a file, without the line break at its end; the hub warns when others can read it |

Sizes are bytes, or a number with \`K\`, \`M\`, \`G\` or \`T\` (powers of 1024). Durations are seconds unless the
name says otherwise.

## What a reload changes

\`hub reload\` and SIGHUP check the whole file, then take over services, roles, groups, the settings of
authenticators, announcements, languages, the title, the accent colour and
[the rest of the look](../how-to/give-it-your-look.md), on gateways too. Other settings need a
restart. \`hub reload\` waits, prints what changed and which settings need a restart, and fails where the hub keeps its former
configuration; the log says the same.

${sections.join('\n')}`;
}
