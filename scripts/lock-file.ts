/** What `package-lock.json` holds of each package, by its place under `node_modules`. */
export interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly integrity?: string;
  readonly resolved?: string;
  readonly engines?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * Tells what `npm ci` would miss, on this platform or another: packages that are not listed or have
 * no checksum, most often binaries for other platforms. npm leaves an optional dependency out without
 * a word when the registry does not have its version, and did so for other platforms whenever
 * `node_modules` was there (npm/cli issue 4828). Engines are no part of it: `npm ci` would compare them with
 * the Node.js of the machine, not with the one that it brings, warn, and leave optional packages out.
 */
export function lockFileProblems({ packages }: LockFile): string[] {
  return Object.entries(packages).flatMap(([place, locked]) => {
    const wanted = { ...locked.dependencies, ...locked.optionalDependencies };
    const missing = Object.keys(wanted).filter(
      (name) => placeOf(packages, place, name) === undefined,
    );
    return [
      ...missing.map((name) => `${place} wants ${name}, which is not listed`),
      ...(place !== '' && locked.integrity === undefined ? [`${place} has no checksum`] : []),
      ...(locked.engines === undefined ? [] : [`${place} has engines`]),
      ...(locked.resolved === undefined ? [] : [`${place} names a host: ${locked.resolved}`]),
    ];
  });
}

/** The same without engines. */
export function withoutEngines(lock: LockFile): LockFile {
  const packages = Object.entries(lock.packages).map(([place, { engines: _, ...locked }]) => [
    place,
    locked,
  ]);
  return { ...lock, packages: Object.fromEntries(packages) };
}

/**
 * The `npm-shrinkwrap.json` of a published package: what its dependencies were when it was tested, and no more.
 * Packages that are left out by name are optional ones of others, which would be compiled at their installation.
 */
export function shrinkwrapOf(
  { packages, ...lock }: LockFile,
  manifest: Pick<LockedPackage, 'dependencies'>,
  leftOut: readonly string[],
): LockFile {
  const kept = new Map<string, LockedPackage>([['', manifest]]);
  for (const [place, { dependencies, optionalDependencies }] of kept) {
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const found = leftOut.includes(name) ? undefined : placeOf(packages, place, name);
      const locked = found === undefined ? undefined : packages[found];
      if (found !== undefined && locked !== undefined) kept.set(found, locked);
    }
  }
  return {
    ...lock,
    packages: Object.fromEntries([...kept].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** Where a package finds another: looks as Node.js does, beside the package itself, then further up. */
function placeOf(packages: LockFile['packages'], place: string, name: string): string | undefined {
  for (
    let folder = place;
    ;
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))
  ) {
    const found = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    if (packages[found] !== undefined) return found;
    if (folder === '') return undefined;
  }
}
