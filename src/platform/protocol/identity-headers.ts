/** What an app can be told of its visitor, and under which header it is unless the app reads another. */
const standardNames = {
  user: 'X-Hub-User',
  groups: 'X-Hub-Groups',
  scopes: 'X-Hub-Scopes',
  display_name: 'X-Hub-Display-Name',
  email: 'X-Hub-Email',
} as const;

export type IdentityField = keyof typeof standardNames;

export const identityFields = Object.keys(standardNames) as readonly IdentityField[];

/** Further names under which an app looks for them, such as `X-Remote-User`. */
export type IdentityHeaderNames = { readonly [field in IdentityField]?: string | undefined };

/** How requests are passed on to an app that looks at names; the keys of the configuration. */
export interface Forwarding {
  /** Whose name and port are in `Host`: those that the visitor asked for, or the app's own. */
  readonly host: 'public' | 'upstream';
  readonly identity_headers: IdentityHeaderNames;
  readonly headers?:
    | { readonly request?: HeaderEdits | undefined; readonly response?: HeaderEdits | undefined }
    | undefined;
}

/** What is changed of the headers of a message. */
export interface HeaderEdits {
  readonly set?: Readonly<Record<string, string>> | undefined;
  readonly remove?: string[] | undefined;
}

/** Of something that has these keys, and undefined where they say nothing. */
export function forwardingOf({ host, identity_headers, headers }: Loose): Forwarding | undefined {
  const names = identity_headers ?? {};
  return host !== 'upstream' && Object.keys(names).length === 0 && headers === undefined
    ? undefined
    : { host: host ?? 'public', identity_headers: names, headers };
}

/** A header that a route both sets or removes and uses to say who asks; undefined where there is none. */
export function contestedHeader({ identity_headers = {}, headers }: Loose): string | undefined {
  const { set = {}, remove = [] } = headers?.request ?? {};
  const names = Object.values(identity_headers).map((name) => name?.toLowerCase());
  return [...Object.keys(set), ...remove].find((name) => names.includes(name.toLowerCase()));
}

type Loose = { readonly [key in keyof Forwarding]?: Forwarding[key] | undefined };

/** Headers that mean something to HTTP, to browsers or to the hub itself. */
const takenNames =
  /^(?:x-hub-.*|x-forwarded-.*|forwarded|x-request-id|sec-.*|content-.*|accept.*|if-.*|access-control-.*|proxy-.*|host|cookie|authorization|connection|upgrade|http2-settings|te|trailer|transfer-encoding|keep-alive|expect|origin|referer|range|via|date|cache-control|pragma|user-agent)$/i;

/** Whether an app may be told who asks in a header of this name (RFC 9110 §5.1, as CGI programs can read it). */
export function isIdentityHeaderName(name: string): boolean {
  return /^[A-Za-z][A-Za-z0-9-]{0,63}$/.test(name) && !takenNames.test(name);
}

/** All headers that say who asks, for an app that reads these further ones. */
export function identityHeaderNames(further: IdentityHeaderNames = {}): string[] {
  return [
    ...Object.values(standardNames),
    ...Object.values(further).filter((name) => name !== undefined),
  ];
}

/** Names and values in turn; nothing of what is not known. */
export function identityHeaders(
  visitor: {
    readonly name: string;
    readonly groups: readonly string[];
    readonly scopes: readonly string[];
    readonly displayName?: string | undefined;
    readonly verifiedEmail?: string | undefined;
  },
  further: IdentityHeaderNames = {},
): string[] {
  const { name, groups, scopes, displayName, verifiedEmail } = visitor;
  const values: Record<IdentityField, string | undefined> = {
    user: encodeHeader(name),
    groups: groups.map(encodeHeader).join(','),
    scopes: scopes.map(encodeHeader).join(' '),
    display_name: displayName === undefined ? undefined : encodeHeader(displayName),
    email: verifiedEmail === undefined ? undefined : encodeHeader(verifiedEmail),
  };
  return identityFields.flatMap((field) => {
    const value = values[field];
    if (value === undefined) return [];
    const own = further[field];
    return [standardNames[field], value, ...(own === undefined ? [] : [own, value])];
  });
}

/** A header value holds visible ASCII; everything else, and what separates lists, is percent-encoded. */
function encodeHeader(text: string): string {
  return /^[\x21-\x24\x26-\x2b\x2d-\x7e]*$/.test(text)
    ? text
    : encodeURIComponent(text).replaceAll('%40', '@');
}
