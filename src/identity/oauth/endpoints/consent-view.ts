import type { AccessTarget } from '../../../platform/protocol/client-id.ts';
import type { Phrase } from '../../../platform/texts/text.ts';
import { mayGrant } from '../../rbac/access-check.ts';
import { adminScopes } from '../../rbac/role.ts';
import { describeScopes, type PlacedScope } from '../../rbac/scope-descriptions.ts';
import type { Client } from '../clients/client.ts';
import type { AuthorizationResponseTarget } from '../oauth-error-response.ts';
import type { ScopeContext } from '../requested-scopes.ts';

/** What the consent page shows. */
export interface ConsentView {
  readonly clientName: Phrase;
  readonly clientKind: Client['kind'];
  /** Whose server it is, when the client is one. */
  readonly ownerUserName: string | undefined;
  /** Of an agent: the host that vouches for it, and the service or server that it wants to use. */
  readonly agent?: {
    readonly host: string;
    readonly resourceKind: AccessTarget['kind'];
    readonly resourceTitle: Phrase;
  };
  /** Where the browser goes afterwards; empty where it stays. */
  readonly redirectHost: string;
  /** Whether that is another origin than the one on which the hub serves the client. */
  readonly leavesHub: boolean;
  /** For display. */
  readonly scopes: readonly PlacedScope[];
  /** Of these and of what they stand for: what reaches other people or the hub itself. */
  readonly exceedingOwn: readonly PlacedScope[];
  /** Whether the client gets everything that an administrator may do. */
  readonly isAdministration: boolean;
  /** What the form sends back as `scopes`, one field each: the person grants no more than was shown. */
  readonly grantedScopes: readonly string[];
}

/** Describes an authorization request for the person who is asked to allow it. */
export function consentView({
  target,
  scopes,
  context,
  titleOfService,
}: {
  /** Undefined for a device, to which no browser is sent. */
  readonly target?: AuthorizationResponseTarget;
  readonly scopes: readonly string[];
  readonly context: ScopeContext;
  readonly titleOfService: (name: string) => Phrase | undefined;
}): ConsentView {
  const { client, catalogue, owner, grantedScopes, membership } = context;
  const { protocol, host } = target === undefined ? { host: '' } : new URL(target.redirectUri);
  const redirectOrigin = host === '' ? protocol : `${protocol}//${host}`;
  const reader = { userName: owner.name, titleOfService };
  const described = describeScopes(scopes, catalogue, reader);
  const { resource } = context;
  const isEverything = scopes.includes('inherit');
  return {
    clientName: client.name,
    clientKind: client.kind,
    ownerUserName: client.ownerUserName,
    ...(client.kind === 'agent' &&
      resource !== undefined && {
        agent: {
          host: new URL(client.clientId).host,
          resourceKind: resource.kind,
          resourceTitle: titleOf(resource, titleOfService),
        },
      }),
    redirectHost: host,
    leavesHub: target !== undefined && redirectOrigin !== client.origin,
    scopes: described,
    exceedingOwn: (isEverything
      ? describeScopes(grantedScopes, catalogue, reader)
      : described
    ).filter(({ group }) => group === 'people' || group === 'hub'),
    isAdministration: isEverything && mayGrant(grantedScopes, adminScopes(catalogue), membership),
    grantedScopes: scopes,
  };
}

function titleOf(
  resource: AccessTarget,
  titleOfService: (name: string) => Phrase | undefined,
): Phrase {
  if (resource.kind === 'service') return titleOfService(resource.name) ?? resource.name;
  const { userName, serverName } = resource;
  return serverName === '' ? userName : `${userName}/${serverName}`;
}
