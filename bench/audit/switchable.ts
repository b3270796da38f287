/**
 * Loaded before a hub, with a path for the socket of `switchRecording` as `?switch=`: what it records can be turned
 * off and on then, down to finding out who acts.
 */
import { registerHooks } from 'node:module';
import { listenForSwitch } from './switch.ts';

const replaced: readonly (readonly [RegExp, string])[] = [
  [/\/store\/audit-trail\.ts$/, './switched-trail.ts'],
  [/\/audit\/actor\.ts$/, './switched-actor.ts'],
];

registerHooks({
  resolve(specifier, context, nextResolve) {
    const found = nextResolve(specifier, context);
    const [, other] = replaced.find(([pattern]) => pattern.test(found.url)) ?? [];
    // What stands for a module has that itself behind it.
    if (other === undefined || context.parentURL?.includes('/bench/audit/')) return found;
    return { ...found, url: new URL(other, import.meta.url).href };
  },
});

listenForSwitch(new URL(import.meta.url).searchParams.get('switch') ?? 'switch');
