/** `merge` is JSON Merge Patch (RFC 7396); `strategic` is that with lists of objects merged by their keys. */
export type PatchKind = 'strategic' | 'merge';

type Json = Readonly<Record<string, unknown>>;

/**
 * Keys by which lists of a pod are merged (`x-kubernetes-patch-merge-key` in the OpenAPI document of
 * Kubernetes); all other lists are replaced.
 */
const mergeKeys: Readonly<Record<string, string>> = {
  containers: 'name',
  initContainers: 'name',
  volumes: 'name',
  volumeMounts: 'mountPath',
  volumeDevices: 'devicePath',
  env: 'name',
  ports: 'containerPort',
  imagePullSecrets: 'name',
  hostAliases: 'ip',
  topologySpreadConstraints: 'topologyKey',
  resourceClaims: 'name',
};

/** Applies a patch to an object; `null` removes a member. Neither is changed. */
export function applyPatch(base: Json, patch: Json, kind: PatchKind): Json {
  const result: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) {
      delete result[name];
      continue;
    }
    const before = Object.hasOwn(base, name) ? base[name] : undefined;
    const merged = patched(before, value, { kind, key: mergeKeys[name] });
    // A plain assignment to `__proto__` would set the prototype.
    Object.defineProperty(result, name, {
      value: merged,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return result;
}

function patched(
  before: unknown,
  value: unknown,
  { kind, key }: { readonly kind: PatchKind; readonly key: string | undefined },
): unknown {
  if (isObject(value)) return applyPatch(isObject(before) ? before : {}, value, kind);
  const isList = Array.isArray(before) && Array.isArray(value);
  return kind === 'strategic' && key !== undefined && isList
    ? mergeLists(before, value, key)
    : value;
}

/** Members with a key that is there are patched, others are added; `{"$patch": "delete"}` removes one. */
function mergeLists(before: readonly unknown[], patch: readonly unknown[], key: string): unknown[] {
  const result = [...before];
  for (const member of patch) {
    const index = result.findIndex(
      (each) => isObject(each) && isObject(member) && each[key] === member[key],
    );
    const found = result[index];
    if (isObject(member) && member['$patch'] === 'delete') {
      if (index !== -1) result.splice(index, 1);
    } else if (isObject(found) && isObject(member)) {
      result[index] = applyPatch(found, member, 'strategic');
    } else {
      result.push(isObject(member) ? applyPatch({}, member, 'strategic') : member);
    }
  }
  return result;
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Name of the container in which a server runs. */
export const serverContainer = 'server';

/** Whether the hub finds its objects by a label, or annotation, of that name. */
export function isReservedLabel(key: string): boolean {
  return key === 'app.kubernetes.io/managed-by' || key.startsWith('hub/');
}

const reservedInMetadata = ['name', 'generateName', 'namespace', 'uid', 'ownerReferences'];
const reservedInServer = ['image', 'envFrom', 'command', 'args'];

/** Paths of what an operator must not set, because the hub could not find or reach its servers any more. */
export function reservedPaths(patch: Json): (string | number)[][] {
  const { metadata, spec } = patch;
  const paths: (string | number)[][] = ['apiVersion', 'kind', 'status', '$patch']
    .filter((name) => name in patch)
    .map((name) => [name]);
  for (const [name, part] of Object.entries({ metadata, spec })) {
    if (part !== undefined && !isObject(part)) paths.push([name]);
  }
  if (isObject(metadata)) {
    paths.push(
      ...reservedInMetadata.filter((name) => name in metadata).map((name) => ['metadata', name]),
    );
    for (const name of ['labels', 'annotations']) {
      const part = metadata[name];
      if (part === null) paths.push(['metadata', name]);
      if (!isObject(part)) continue;
      paths.push(
        ...Object.keys(part)
          .filter(isReservedLabel)
          .map((key) => ['metadata', name, key]),
      );
    }
  }
  if (isObject(spec)) {
    if ('restartPolicy' in spec) paths.push(['spec', 'restartPolicy']);
    paths.push(...reservedInContainers(spec['containers']));
  }
  return paths;
}

function reservedInContainers(containers: unknown): (string | number)[][] {
  if (containers === undefined) return [];
  if (!Array.isArray(containers)) return [['spec', 'containers']];
  return containers.flatMap((container: unknown, index) => {
    if (!isObject(container) || container['name'] !== serverContainer) return [];
    return [...reservedInServer, '$patch']
      .filter((name) => name in container)
      .map((name) => ['spec', 'containers', index, name]);
  });
}
