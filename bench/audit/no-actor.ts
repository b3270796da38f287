/** Stands for `src/audit/actor.ts` where nothing is recorded. */
export const actAs = <Result>(_actor: unknown, work: () => Result): Result => work();
export const actAsHub = <Result>(work: () => Result): Result => work();
export function identifyActor(): void {}
export function currentActor(): undefined {}
