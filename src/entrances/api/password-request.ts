import type { Context } from 'koa';
import { z } from 'zod';
import type { Caller } from '../../identity/rbac/access-check.ts';
import { credentials } from '../../operations/models.ts';
import type { OperationDeclaration } from '../../operations/operation.ts';
import { checkBody } from '../../operations/perform.ts';
import { readJsonBody } from '../../platform/http/body.ts';
import type { LoginForm } from '../../plugin/host/authenticator.ts';

const maxBodyBytes = 64 * 1024;

const named = z.looseObject({ auth: z.unknown() });

/** Who calls, and the body where it had to be read for that. */
export interface Identified {
  readonly caller: Caller | undefined;
  readonly body?: unknown;
}

/** Finds out who calls by a name and password. Throws as `PasswordCallers.identify`. */
export type IdentifyByPassword = (
  ctx: Context,
  fields: LoginForm,
  authenticatorName?: string,
) => Promise<Caller>;

/** Identifies a caller without a token by `auth` in the body, which an operation with `takesPassword` has. */
export async function identifyByPassword(
  ctx: Context,
  { body: schema }: OperationDeclaration,
  identify: IdentifyByPassword,
): Promise<Identified> {
  // A page could try passwords from the addresses of all who visit it.
  if (isFromPage(ctx) || schema === undefined) return { caller: undefined };
  const sent = await readJsonBody(ctx.req, maxBodyBytes, { anyContentType: true });
  if (named.safeParse(sent).data?.auth === undefined) return { caller: undefined };
  const body = checkBody(schema, sent);
  const { auth } = checkBody(z.looseObject({ auth: credentials }), sent);
  const fields = Object.entries(auth).filter((field) => typeof field[1] === 'string');
  const form = new Map(fields as [string, string][]);
  return { caller: await identify(ctx, form, auth.authenticator), body };
}

/** Browsers say so of every request that a script or a form makes. */
function isFromPage({ req: { headers } }: Context): boolean {
  return headers.origin !== undefined || headers['sec-fetch-site'] !== undefined;
}
