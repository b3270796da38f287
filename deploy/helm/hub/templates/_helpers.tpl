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

{{/* How many gateways. They answer no challenge of an authority but dns-01. */}}
{{- define "hub.gateways" -}}
{{- $replicas := .Values.gateways.replicas -}}
{{- $challenge := dig "Hub" "acme" "challenge" "tls-alpn-01" .Values.config -}}
{{- $atHub := and (eq .Values.tls.mode "acme") (ne $challenge "dns-01") -}}
{{- if and $atHub (gt (int $replicas) 0) -}}
{{- fail "tls.mode acme is for hubs without gateways: leave gateways.replicas out, or set config.Hub.acme.challenge to dns-01" -}}
{{- end -}}
{{- if kindIs "invalid" $replicas }}{{ ternary 0 2 $atHub }}{{ else }}{{ $replicas }}{{ end -}}
{{- end -}}

{{/* What browsers reach: gateways, or the hub where there are none. */}}
{{- define "hub.frontComponent" -}}
{{- if gt (include "hub.gateways" . | int) 0 }}gateway{{ else }}hub{{ end -}}
{{- end -}}

{{- define "hub.bindUrl" -}}
{{ ternary "https" "http" (ne .Values.tls.mode "") }}://0.0.0.0:8000/
{{- end -}}

{{/* Where who comes by plain http is sent to https, with TLS of the hub's own. */}}
{{- define "hub.redirectUrl" -}}
http://0.0.0.0:8001/
{{- end -}}

{{/* Ports of the container that browsers reach. */}}
{{- define "hub.frontPorts" -}}
- name: http
  containerPort: 8000
{{- if .Values.tls.mode }}
- name: redirect
  containerPort: 8001
{{- end }}
{{- end -}}

{{/* Who reaches what browsers reach: with TLS of the hub's own there is nothing before it. */}}
{{- define "hub.frontIngress" -}}
{{- if .Values.tls.mode -}}
- ports:
    - port: http
    - port: redirect
{{- else -}}
- from:
    {{- toYaml .Values.networkPolicy.ingressFrom | nindent 4 }}
  ports:
    - port: http
{{- end -}}
{{- end -}}

{{/* Whether an Ingress ends TLS. */}}
{{- define "hub.hasIngress" -}}
{{- if and .Values.ingress.enabled (eq .Values.tls.mode "") }}true{{ end -}}
{{- end -}}

{{/* What the chart knows of the configuration, under what the values say. */}}
{{- define "hub.config" -}}
{{- $hub := dict
  "bind_url" (include "hub.bindUrl" .)
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
{{- if .Values.tls.mode -}}
{{- if .Values.httpRoute.enabled }}{{ fail "httpRoute is for hubs whose TLS ends before them: set tls.mode to nothing" }}{{ end -}}
{{- $_ := set $hub "public_url" (printf "https://%s/" .Values.ingress.host) -}}
{{- if eq (include "hub.frontComponent" .) "hub" }}{{ $_ := set $hub "redirect_bind_url" (include "hub.redirectUrl" .) }}{{ end -}}
{{- if eq .Values.tls.mode "acme" -}}
{{- $acme := dict "accept_terms" true -}}
{{- with .Values.tls.email }}{{ $_ := set $acme "email" . }}{{ end -}}
{{- $_ := set $hub "acme" $acme -}}
{{- else -}}
{{- $_ := set $hub "certificates" (list (dict "certificate" "/etc/hub/tls/tls.crt" "key" "/etc/hub/tls/tls.key")) -}}
{{- end -}}
{{- else if or .Values.ingress.enabled .Values.httpRoute.enabled -}}
{{- $_ := set $hub "public_url" (printf "%s://%s/" (ternary "https" "http" (ne .Values.ingress.tlsSecret "")) .Values.ingress.host) -}}
{{- $_ := set $hub "trusted_proxies" .Values.ingress.trustedProxies -}}
{{- end -}}
{{- $own := dict
  "Hub" $hub
  "Spawner" (dict "class" "kubernetes")
  "KubernetesSpawner" (dict "namespace" (include "hub.serversNamespace" .))
-}}
{{- with .Values.servers.files -}}
{{- if (dig "KubernetesSpawner" "pod_patch" dict $.Values.config) -}}
{{- fail "servers.files is a pod_patch of its own: with config.KubernetesSpawner.pod_patch, mount the files there" -}}
{{- end -}}
{{- $mounts := list -}}
{{- range $name, $file := . -}}
{{- $mounts = append $mounts (dict "name" "files" "mountPath" $file.mountPath "subPath" $name "readOnly" true) -}}
{{- end -}}
{{- $volume := dict "name" "files" "configMap" (dict "name" (printf "%s-files" (include "hub.name" $))) -}}
{{- $spec := dict "containers" (list (dict "name" "server" "volumeMounts" $mounts)) "volumes" (list $volume) -}}
{{- $_ := set $own.KubernetesSpawner "pod_patch" (dict "spec" $spec) -}}
{{- end -}}
{{- $config := mustMergeOverwrite $own (deepCopy .Values.config) -}}
{{- if eq (include "hub.frontComponent" .) "gateway" -}}
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
{{- if eq (include "hub.frontComponent" .) "gateway" }}
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
