import { z } from 'zod';
import type { ConfigProblem } from '../errors.ts';
import { formatPath } from './problem-path.ts';
import { adviceOnOldSetting, didYouMean } from './suggestion.ts';

type Issue = z.core.$ZodIssue;
type JsonSchema = z.core.JSONSchema.BaseSchema;

/** A problem with the path it stands at, as steps. */
interface LocatedProblem {
  readonly steps: readonly PropertyKey[];
  readonly message: string;
}

/** Puts what a schema refused into words for the person who wrote the configuration. */
export function describeIssues(
  issues: readonly Issue[],
  schema: z.ZodType,
  prefix: readonly PropertyKey[] = [],
): ConfigProblem[] {
  const jsonSchema = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return issues
    .flatMap((issue) => describeIssue(issue, jsonSchema))
    .map(({ steps, message }) => ({ path: formatPath([...prefix, ...steps]), message }));
}

function describeIssue(issue: Issue, schema: JsonSchema): LocatedProblem[] {
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = knownKeys(schema, issue.path);
      const isOfSection = issue.path.length === 0;
      return issue.keys.map((key) => {
        const advice = didYouMean(key, known) || (isOfSection && adviceOnOldSetting(key, known));
        return {
          steps: [...issue.path, key],
          message: `is not a known setting${advice || ''}`,
        };
      });
    }
    case 'invalid_union':
      return describeUnion(issue, schema);
    case 'invalid_key': {
      const [first] = issue.issues;
      return [
        { steps: issue.path, message: first === undefined ? issue.message : wordsFor(first) },
      ];
    }
    case 'invalid_type':
    case 'invalid_value':
    case 'invalid_format':
    case 'invalid_element':
    case 'too_small':
    case 'too_big':
    case 'not_multiple_of':
    case 'custom':
      return [{ steps: issue.path, message: wordsFor(issue) }];
  }
}

/**
 * Chooses the alternative that was meant: the one whose type fits. Reporting what every alternative
 * misses would bury the one slip under noise.
 */
function describeUnion(issue: z.core.$ZodIssueInvalidUnion, schema: JsonSchema): LocatedProblem[] {
  const alternatives = issue.errors as Issue[][];
  const fitting = alternatives.filter((issues) => !issues.some(isWrongTypeHere));
  const [meant] = fitting;
  if (meant !== undefined && (fitting.length === 1 || hasCustomLabels(issue))) {
    if (fitting.length > 1) return [{ steps: issue.path, message: issue.message }];
    return meant.flatMap((inner) =>
      describeIssue({ ...inner, path: [...issue.path, ...inner.path] }, schema),
    );
  }
  if (hasCustomLabels(issue)) return [{ steps: issue.path, message: issue.message }];
  const expected = alternatives.flat().filter(isWrongTypeHere).map(expectedType);
  const message = `must be ${[...new Set(expected)].join(' or ')}`;
  return [{ steps: issue.path, message: expected.length === 0 ? 'is not valid here' : message }];
}

function hasCustomLabels(issue: Issue): boolean {
  return issue.message !== 'Invalid input';
}

function isWrongTypeHere(issue: Issue): boolean {
  return issue.path.length === 0 && issue.code === 'invalid_type';
}

function wordsFor(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return isMissing(issue) ? 'is missing' : `must be ${expectedType(issue)}`;
    case 'invalid_value':
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}`;
    case 'too_small':
      if (issue.origin === 'string' && issue.minimum === 1) return 'must not be empty';
      if (issue.origin === 'array')
        return `needs at least ${issue.minimum} ${entries(issue.minimum)}`;
      if (issue.origin === 'string') return `must have at least ${characters(issue.minimum)}`;
      return `must be ${issue.inclusive === true ? 'at least' : 'more than'} ${issue.minimum}`;
    case 'too_big':
      if (issue.origin === 'string') return `must have at most ${characters(issue.maximum)}`;
      if (issue.origin === 'array')
        return `takes at most ${issue.maximum} ${entries(issue.maximum)}`;
      return `must be ${issue.inclusive === true ? 'at most' : 'less than'} ${issue.maximum}`;
    case 'invalid_format':
      if (issue.format === 'starts_with' && 'prefix' in issue) {
        return `must begin with ${JSON.stringify(issue.prefix)}`;
      }
      if (issue.message.startsWith('Invalid string')) return `does not match ${issue.pattern}`;
      return issue.message;
    case 'invalid_key':
    case 'invalid_element':
    case 'invalid_union':
    case 'not_multiple_of':
    case 'unrecognized_keys':
    case 'custom':
      return issue.message;
  }
}

function isMissing(issue: Issue): boolean {
  return issue.message.endsWith('received undefined');
}

function characters(count: number | bigint): string {
  return `${count} ${Number(count) === 1 ? 'character' : 'characters'}`;
}

function entries(limit: number | bigint): string {
  return Number(limit) === 1 ? 'entry' : 'entries';
}

function expectedType(issue: Issue): string {
  const expected = issue.code === 'invalid_type' ? issue.expected : '';
  const words: Record<string, string> = {
    string: 'text',
    number: 'a number',
    int: 'a whole number',
    boolean: 'true or false',
    array: 'a list',
    object: 'an object',
    record: 'an object',
  };
  return words[expected] ?? expected;
}

/** The keys a schema knows at a path; empty where anything goes. */
function knownKeys(schema: JsonSchema, path: readonly PropertyKey[]): string[] {
  let reached: JsonSchema[] = [schema];
  for (const step of path)
    reached = reached.flatMap(alternativesOf).flatMap((at) => below(at, step));
  return reached.flatMap(alternativesOf).flatMap(({ properties }) => Object.keys(properties ?? {}));
}

function alternativesOf(schema: JsonSchema): JsonSchema[] {
  const inner = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  return [schema, ...inner.flatMap(alternativesOf)];
}

function below(schema: JsonSchema, step: PropertyKey): JsonSchema[] {
  if (typeof step === 'number') return isSchema(schema.items) ? [schema.items] : [];
  const property = schema.properties?.[String(step)];
  if (isSchema(property)) return [property];
  return isSchema(schema.additionalProperties) ? [schema.additionalProperties] : [];
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
