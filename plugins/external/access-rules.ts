import { type Claims, listAt, verifiedDomain } from './claims.ts';

/** A claim that must hold one of the listed values. */
export interface ClaimRule {
  /** Name of the option, for the log. */
  readonly option: string;
  readonly claim: string;
  readonly anyOf: readonly string[];
}

/** Who may log in through a provider, and what they become in the hub. */
export interface AccessRules {
  /** Every one of these must be met. */
  readonly gates: readonly ClaimRule[];
  /** One of these must be met, when there are any. */
  readonly grants: readonly ClaimRule[];
  readonly allowedDomains: readonly string[];
  readonly adminGroups: readonly string[];
  readonly groupsClaim: string | undefined;
  readonly rolesClaim: string | undefined;
}

/** What the rules make of a user's claims. */
export interface Verdict {
  /** Undefined when there are no rules. */
  readonly allowed?: boolean;
  readonly admin?: boolean;
  readonly groups?: readonly string[];
  readonly roles?: readonly string[];
  /** What could not be decided or was not met; names options and claims, never values. */
  readonly reasons: readonly string[];
}

/** Judges claims. A rule that cannot be evaluated is a rule that is not met. */
export function judge(claims: Claims, rules: AccessRules): Verdict {
  const reasons: string[] = [];
  const isMet = (rule: ClaimRule): boolean => {
    const values = listAt(claims, rule.claim);
    if (values === undefined) {
      reasons.push(`${rule.option} cannot be checked: there is no list of names in ${rule.claim}`);
      return false;
    }
    const met = values.some((value) => rule.anyOf.includes(value));
    if (!met) reasons.push(`${rule.option} is not met by ${rule.claim}`);
    return met;
  };

  const groups = rules.groupsClaim === undefined ? undefined : listAt(claims, rules.groupsClaim);
  const roles = rules.rolesClaim === undefined ? undefined : listAt(claims, rules.rolesClaim);
  const hasAdminRule = rules.adminGroups.length > 0;
  const isAdmin =
    hasAdminRule && groups?.some((group) => rules.adminGroups.includes(group)) === true;

  const arePassed =
    rules.gates.map(isMet).every(Boolean) && isDomainAllowed(claims, rules, reasons);
  const hasGates = rules.gates.length > 0 || rules.allowedDomains.length > 0;
  const isGranted = isAdmin || rules.grants.map(isMet).some(Boolean);
  const allowed =
    rules.grants.length > 0 ? arePassed && isGranted : hasGates ? arePassed : undefined;

  return {
    ...(allowed !== undefined && { allowed }),
    ...(hasAdminRule && { admin: isAdmin }),
    ...(groups !== undefined && { groups }),
    ...(roles !== undefined && { roles }),
    reasons,
  };
}

function isDomainAllowed(
  claims: Claims,
  { allowedDomains }: AccessRules,
  reasons: string[],
): boolean {
  if (allowedDomains.length === 0) return true;
  const domain = verifiedDomain(claims);
  if (domain === undefined) {
    reasons.push('allowed_domains cannot be checked: there is no verified e-mail address');
    return false;
  }
  if (allowedDomains.includes(domain)) return true;
  reasons.push('allowed_domains is not met by email');
  return false;
}
