interface ContainerFields {
  readonly command: readonly string[];
  readonly [field: string]: unknown;
}

/** A pod of one container that meets the *restricted* standard and runs once. */
export function podManifest(
  name: string,
  container: ContainerFields,
  spec: Readonly<Record<string, unknown>> = {},
  metadata: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 5,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: 'main',
          image: 'example.org/small:1',
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
          },
          ...container,
        },
      ],
      ...spec,
    },
  };
}
