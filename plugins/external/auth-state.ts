import type { TokenEndpointResponse } from 'openid-client';
import { z } from 'zod';
import type { Claims } from './claims.ts';

const schema = z.object({
  accessToken: z.string(),
  refreshToken: z.string().optional(),
  /** Milliseconds since 1970. */
  expiresAt: z.number().optional(),
  idClaims: z.record(z.string(), z.unknown()),
  claims: z.record(z.string(), z.unknown()),
});

/** What is kept of a login, encrypted by the hub, to ask the provider again. */
export type AuthState = z.output<typeof schema>;

/** Reads back what was kept; undefined when it is not from this plugin. */
export function readAuthState(kept: unknown): AuthState | undefined {
  return schema.safeParse(kept).data;
}

/** What to keep of a token answer. Without a new refresh token the former one stays good. */
export function stateOf(
  tokens: TokenEndpointResponse,
  { idClaims, claims }: { readonly idClaims: Claims; readonly claims: Claims },
  former?: AuthState,
): AuthState {
  const { access_token, refresh_token = former?.refreshToken, expires_in } = tokens;
  return {
    accessToken: access_token,
    ...(refresh_token !== undefined && { refreshToken: refresh_token }),
    ...(expires_in !== undefined && { expiresAt: Date.now() + expires_in * 1000 }),
    idClaims: { ...idClaims },
    claims: { ...claims },
  };
}
