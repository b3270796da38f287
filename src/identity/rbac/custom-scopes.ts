import type { ConfigProblem } from '../../platform/errors.ts';
import { quoteScope } from './scope.ts';
import type { CustomScope } from './scope-definitions.ts';

const customScopeName = /^custom:[a-z0-9][a-z0-9_\-*:]+[a-z0-9_*]$/;

/** Checks `Hub.custom_scopes` and lists every problem. The hub transports these scopes; services enforce them. */
export function validateCustomScopes(
  customScopes: Readonly<Record<string, CustomScope>>,
): ConfigProblem[] {
  return Object.entries(customScopes).flatMap(([name, { description, subscopes }]) => {
    const path = `Hub.custom_scopes.${name}`;
    const problems: ConfigProblem[] = [];
    if (!customScopeName.test(name)) {
      problems.push({
        path,
        message:
          'is not usable as a scope: begin with custom: and use a-z, 0-9 and _ - * : after it, at least three characters',
      });
    }
    if (description.trim() === '') {
      problems.push({ path: `${path}.description`, message: 'must tell what the scope allows' });
    }
    subscopes.forEach((subscope, index) => {
      const problem = subscopeProblem(name, subscope, customScopes);
      if (problem !== undefined) {
        problems.push({ path: `${path}.subscopes[${index}]`, message: problem });
      }
    });
    return problems;
  });
}

function subscopeProblem(
  name: string,
  subscope: string,
  customScopes: Readonly<Record<string, CustomScope>>,
): string | undefined {
  if (subscope === name) return 'a scope cannot be its own sub-scope';
  if (!subscope.startsWith('custom:')) {
    return `${quoteScope(subscope)} is not a custom scope; only those can be sub-scopes of one`;
  }
  if (!Object.hasOwn(customScopes, subscope)) {
    return `${quoteScope(subscope)} is not defined in Hub.custom_scopes`;
  }
  return undefined;
}
