-- Health of a StatefulSet for Argo CD: resource.customizations.health.apps_StatefulSet in argocd-cm. Argo CD's own check
-- takes a StatefulSet whose partition is parked for complete. This one, if Pawl drives it, asks for the revision.
local hs = {status = "Progressing", message = "Waiting for the StatefulSet controller"}
local status = obj.status or {}
local wanted = obj.spec.replicas
if wanted == nil then
  wanted = 1
end
if status.observedGeneration == nil or status.observedGeneration < obj.metadata.generation then
  return hs
end
if (status.readyReplicas or 0) < wanted then
  hs.message = "Waiting for " .. (wanted - (status.readyReplicas or 0)) .. " pods to be ready"
  return hs
end
local labels = obj.metadata.labels or {}
local strategy = obj.spec.updateStrategy or {}
if strategy.type == "OnDelete" then
  hs.status, hs.message = "Healthy", "All pods are ready"
elseif labels["pawl.dev/mode"] ~= nil or (strategy.rollingUpdate or {}).partition == nil then
  if status.updateRevision ~= status.currentRevision or (status.updatedReplicas or 0) < wanted then
    hs.message = "Waiting for " .. (wanted - (status.updatedReplicas or 0)) .. " pods to be updated; see its RolloutProgress"
  else
    hs.status, hs.message = "Healthy", "All pods are updated and ready"
  end
elseif (status.updatedReplicas or 0) < wanted - strategy.rollingUpdate.partition then
  hs.message = "Waiting for the partitioned rollout"
else
  hs.status, hs.message = "Healthy", "The partitioned rollout is complete"
end
return hs
