import { z } from 'zod';
import { isEditableInAnswers, isEditableInRequests } from '../protocol/forwarded-headers.ts';
import { identityFields, isIdentityHeaderName } from '../protocol/identity-headers.ts';
import { text } from '../texts/text.ts';
import { says } from './common-schema.ts';

const headerName = z
  .string()
  .refine(
    isIdentityHeaderName,
    says(
      text`is no name for such a header: letters, digits and hyphens, and none that has a meaning of its own`,
    ),
  )
  .optional();

/** Names that differ by case are one header (RFC 9110 §5.1): what is sent would depend on their order. */
function areDistinct(names: readonly (string | undefined)[]): boolean {
  const given = names.flatMap((name) => name?.toLowerCase() ?? []);
  return new Set(given).size === given.length;
}

const twice = says(text`has the same header twice`);

function headerEdits(isEditable: (name: string) => boolean) {
  const name = z
    .string()
    .refine(
      isEditable,
      says(
        text`is no header that can be changed here: those that say who asks, that frame a message, or that the hub writes itself stay as they are`,
      ),
    );
  const value = z
    .string()
    .max(4_000)
    .refine(
      (value) => /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value),
      says(text`is not printable ASCII in one line`),
    );
  return z
    .strictObject({
      set: z
        .record(name, value)
        .refine((set) => areDistinct(Object.keys(set)), twice)
        .optional()
        .describe('Replaces any header of that name.'),
      remove: z.array(name).max(100).refine(areDistinct, twice).optional(),
    })
    .optional();
}

/** How requests are passed on to an app that looks at names: keys of services, routes and servers alike. */
export const forwardingKeys = {
  host: z
    .enum(['public', 'upstream'])
    .default('public')
    .describe(
      'Which Host header the app gets: the public one, or its own address, for an app that answers 403 to names it does not know. X-Forwarded-Host always has the public one.',
    ),
  identity_headers: z
    .strictObject(
      Object.fromEntries(identityFields.map((field) => [field, headerName])) as Record<
        (typeof identityFields)[number],
        typeof headerName
      >,
    )
    .refine((names) => areDistinct(Object.values(names)), twice)
    .default({})
    .describe(
      'Additional headers that tell a guarded app who the visitor is, such as `{"user": "X-Remote-User"}`; visitors cannot set them.',
    ),
  headers: z
    .strictObject({
      request: headerEdits(isEditableInRequests).describe('In requests to the app.'),
      response: headerEdits(isEditableInAnswers).describe('In its responses to visitors.'),
    })
    .optional()
    .describe(
      'Headers to set or remove, such as `{"request": {"set": {"Authorization": "Basic …"}}, "response": {"remove": ["Server"]}}`.',
    ),
};
