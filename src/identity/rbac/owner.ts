/** Whom a token or a request belongs to. */
export interface Owner {
  readonly kind: 'user' | 'service';
  readonly name: string;
}

/** The OAuth client a token was issued to, and what it stands for; `!service` and `!server` mean that. */
export interface OAuthClientIdentity {
  readonly clientId: string;
  readonly service?: string;
  readonly server?: { readonly userName: string; readonly serverName: string };
}
