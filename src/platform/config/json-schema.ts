import { z } from 'zod';
import { secretReference } from './common-schema.ts';
import { builtinSections } from './sections.ts';

/** A section that a plugin adds to the configuration. */
export interface PluginSectionSchema {
  readonly section: string;
  readonly optionsSchema: z.ZodType;
  /** Dotted names of options that may be given as references to a secret. */
  readonly secretOptions?: readonly string[];
  /** What profiles can say to this spawner alone. */
  readonly profileOptionsSchema?: z.ZodType;
}

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Describes the configuration file as a JSON Schema, so that editors complete and check it. */
export function createConfigJsonSchema(plugins: readonly PluginSectionSchema[] = []): JsonSchema {
  const sections = Object.entries(builtinSections).map(([name, schema]) => [
    name,
    describe(schema),
  ]);
  typeProfileOptions(Object.fromEntries(sections)['Spawner'], plugins);
  const pluginSections = plugins.map(({ section, optionsSchema, secretOptions = [] }) => {
    const description = describe(optionsSchema);
    for (const option of secretOptions) allowReference(description, option.split('.'));
    return [section, description];
  });
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Configuration of the Hub',
    type: 'object',
    properties: {
      $schema: { type: 'string' },
      ...Object.fromEntries(sections),
      ...Object.fromEntries(pluginSections),
    },
    additionalProperties: false,
  };
}

/** Says of the `options` of a profile that they are those of one of the spawners. */
function typeProfileOptions(
  spawner: JsonSchema | undefined,
  plugins: readonly PluginSectionSchema[],
): void {
  const profile = propertyOf(itemsOf(propertyOf(spawner, 'profiles')), 'options');
  const choices = plugins.flatMap(({ section, profileOptionsSchema }) =>
    profileOptionsSchema === undefined
      ? []
      : [{ title: `${section}: options of a profile`, ...describe(profileOptionsSchema) }],
  );
  if (profile === undefined || choices.length === 0) return;
  const { description } = profile;
  for (const key of Object.keys(profile)) delete profile[key];
  Object.assign(profile, { ...(description !== undefined && { description }), anyOf: choices });
}

function propertyOf(schema: JsonSchema | undefined, name: string): JsonSchema | undefined {
  const property = schema?.properties?.[name];
  return typeof property === 'object' ? property : undefined;
}

function itemsOf(schema: JsonSchema | undefined): JsonSchema | undefined {
  const items = schema?.items;
  return typeof items === 'object' && !Array.isArray(items) ? (items as JsonSchema) : undefined;
}

function describe(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest;
}

function allowReference(schema: JsonSchema, [step = '', ...rest]: readonly string[]): void {
  const property = schema.properties?.[step];
  if (typeof property !== 'object' || schema.properties === undefined) return;
  if (rest.length > 0) {
    allowReference(property, rest);
    return;
  }
  const { description, ...own } = property;
  const { anyOf: [, ...references] = [] } = describe(secretReference);
  schema.properties[step] = {
    ...(description !== undefined && { description }),
    anyOf: [own, ...references],
  };
}
