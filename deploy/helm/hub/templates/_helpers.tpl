{{- define "hub.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "hub.serversNamespace" -}}
{{- .Values.servers.namespace | default (printf "%s-servers" .Release.Namespace | trunc 63 | trimSuffix "-") -}}
{{- end -}}

{{/* Labels by which a Deployment, a Service or a policy finds pods: (list . "gateway") */}}
{{- define "hub.selector" -}}
app.kubernetes.io/name: {{ (index . 0).Chart.Name }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "hub.labels" -}}
{{ include "hub.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
{{- end -}}

{{/* A namespace in which only pods run that keep to the restricted standard. */}}
{{- define "hub.restricted" -}}
pod-security.kubernetes.io/enforce: restricted
pod-security.kubernetes.io/audit: restricted
pod-security.kubernetes.io/warn: restricted
{{- end -}}

{{- define "hub.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "hub.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "hub.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Pods on different nodes where there are several. */}}
{{- define "hub.spread" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "hub.selector" . | nindent 6 }}
{{- end -}}

{{/* Where pods run and what runs before them, from the values of hubs or gateways. */}}
{{- define "hub.placement" -}}
{{- $given := dict -}}
{{- range list "nodeSelector" "tolerations" "affinity" "priorityClassName" "initContainers" -}}
{{- $name := . -}}
{{- with index $ $name }}{{ $_ := set $given $name . }}{{ end -}}
{{- end -}}
{{- if $given }}{{ toYaml $given }}{{ end -}}
{{- end -}}

{{/* All hosts that lead here, as JSON: with subdomain_host those of users and services too. */}}
{{- define "hub.hosts" -}}
{{- $hosts := prepend .Values.ingress.extraHosts .Values.ingress.host -}}
{{- with (.Values.config.Hub | default dict).subdomain_host -}}
{{- $hosts = append $hosts (printf "*.%s" (urlParse .).hostname) -}}
{{- end -}}
{{- $hosts | uniq | toJson -}}
{{- end -}}

{{/* The port of gateways, or of the hub where there are none, of the namespace of the release. */}}
{{- define "hub.frontComponent" -}}
{{- if gt (int .Values.gateways.replicas) 0 }}gateway{{ else }}hub{{ end -}}
{{- end -}}

{{/* What the chart knows of the configuration, under what the values say. */}}
{{- define "hub.config" -}}
{{- $hub := dict
  "bind_url" "http://0.0.0.0:8000/"
  "hub_bind_url" "http://0.0.0.0:8080"
  "hub_connect_url" (printf "http://%s-api.%s.svc:8080" (include "hub.name" .) .Release.Namespace)
  "instance_url" (dict "env" "HUB_INSTANCE_URL")
  "cookie_secret" (dict "env" "HUB_COOKIE_SECRET")
-}}
{{- if eq .Values.database.type "postgresql" -}}
{{- $_ := set $hub "database_url" (dict "env" "HUB_DATABASE_URL") -}}
{{- end -}}
{{- if .Values.secret.keyvUrl -}}
{{- $_ := set $hub "keyv_url" (dict "env" "HUB_KEYV_URL") -}}
{{- end -}}
{{- if or .Values.ingress.enabled .Values.httpRoute.enabled -}}
{{- $_ := set $hub "public_url" (printf "%s://%s/" (ternary "https" "http" (ne .Values.ingress.tlsSecret "")) .Values.ingress.host) -}}
{{- $_ := set $hub "trusted_proxies" .Values.ingress.trustedProxies -}}
{{- end -}}
{{- $own := dict
  "Hub" $hub
  "Spawner" (dict "class" "kubernetes")
  "KubernetesSpawner" (dict "namespace" (include "hub.serversNamespace" .))
-}}
{{- $config := mustMergeOverwrite $own (deepCopy .Values.config) -}}
{{- if gt (int .Values.gateways.replicas) 0 -}}
{{- $service := dict "name" "gateways" "api_token" (dict "env" "HUB_GATEWAY_TOKEN") -}}
{{- $role := dict "name" "gateways" "scopes" (list "gateway") "services" (list "gateways") -}}
{{- $_ := set $config.Hub "services" (append ($config.Hub.services | default list) $service) -}}
{{- $_ := set $config.Hub "load_roles" (append ($config.Hub.load_roles | default list) $role) -}}
{{- end -}}
{{- if .Values.serviceMonitor.enabled -}}
{{- $service := dict "name" "prometheus" "api_token" (dict "env" "HUB_METRICS_TOKEN") -}}
{{- $role := dict "name" "metrics" "scopes" (list "read:metrics") "services" (list "prometheus") -}}
{{- $_ := set $config.Hub "services" (append ($config.Hub.services | default list) $service) -}}
{{- $_ := set $config.Hub "load_roles" (append ($config.Hub.load_roles | default list) $role) -}}
{{- end -}}
{{- $config | toPrettyJson -}}
{{- end -}}

{{/* An environment variable from the Secret: (list . "NAME" "key") */}}
{{- define "hub.secretVariable" -}}
- name: {{ index . 1 }}
  valueFrom:
    secretKeyRef:
      name: {{ (index . 0).Values.secret.name }}
      key: {{ index . 2 }}
{{- end -}}

{{/* What a program of the hub needs to read its configuration, as environment variables. */}}
{{- define "hub.environment" -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: HUB_INSTANCE_URL
  value: {{ .Values.hub.instanceUrl }}
{{- include "hub.secretVariable" (list . "HUB_COOKIE_SECRET" "cookie-secret") | nindent 0 }}
{{- if eq .Values.database.type "postgresql" }}
{{- include "hub.secretVariable" (list . "HUB_DATABASE_URL" "database-url") | nindent 0 }}
{{- end }}
{{- if .Values.secret.keyvUrl }}
{{- include "hub.secretVariable" (list . "HUB_KEYV_URL" "keyv-url") | nindent 0 }}
{{- end }}
{{- if gt (int .Values.gateways.replicas) 0 }}
{{- include "hub.secretVariable" (list . "HUB_GATEWAY_TOKEN" "gateway-token") | nindent 0 }}
{{- end }}
{{- if .Values.serviceMonitor.enabled }}
{{- include "hub.secretVariable" (list . "HUB_METRICS_TOKEN" "metrics-token") | nindent 0 }}
{{- end }}
{{- with .Values.hub.env }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{/* Where users' servers run, as the configuration says it. */}}
{{- define "hub.serverPlacement" -}}
{{- $spawner := .Values.config.KubernetesSpawner | default dict -}}
{{- with $spawner.node_selector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $spawner.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
