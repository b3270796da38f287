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
      set: z.record(name, value).optional().describe('In place of what there is of that name.'),
      remove: z.array(name).max(100).optional(),
    })
    .optional();
}

/** How requests are passed on to an app that looks at names: keys of services, routes and servers alike. */
export const forwardingKeys = {
  host: z
    .enum(['public', 'upstream'])
    .default('public')
    .describe(
      'Which Host an app is asked with: the one that the visitor asked for, or its own address, for an app that answers 403 to a name that it does not know. X-Forwarded-Host has the other.',
    ),
  identity_headers: z
    .strictObject(
      Object.fromEntries(identityFields.map((field) => [field, headerName])) as Record<
        (typeof identityFields)[number],
        typeof headerName
      >,
    )
    .refine((names) => {
      const given = Object.values(names).flatMap((name) => name?.toLowerCase() ?? []);
      return new Set(given).size === given.length;
    }, says(text`has the same header twice`))
    .default({})
    .describe(
      'Further headers by which an app that the gateway guards learns who asks, such as `{"user": "X-Remote-User"}`; visitors cannot set them.',
    ),
  headers: z
    .strictObject({
      request: headerEdits(isEditableInRequests).describe('Of requests, for the app.'),
      response: headerEdits(isEditableInAnswers).describe('Of its answers, for visitors.'),
    })
    .optional()
    .describe(
      'Headers that are set or removed on the way, such as `{"request": {"set": {"Authorization": "Basic …"}}, "response": {"remove": ["Server"]}}`.',
    ),
};
