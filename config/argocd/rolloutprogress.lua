-- Health of a RolloutProgress for Argo CD: resource.customizations.health.pawl.dev_RolloutProgress in argocd-cm.
local hs = {status = "Progressing", message = "Pawl has not looked at it yet"}
if obj.status == nil or obj.status.conditions == nil then
  return hs
end
for _, condition in ipairs(obj.status.conditions) do
  if condition.status == "True" then
    if condition.type == "Stalled" then
      hs.status, hs.message = "Degraded", condition.reason .. ": " .. condition.message
    elseif condition.type == "Ready" then
      hs.status, hs.message = "Healthy", condition.message
    elseif condition.type == "Reconciling" then
      hs.message = condition.reason .. ": " .. condition.message
      if condition.reason == "Paused" or condition.reason == "AwaitingApproval" then
        hs.status = "Suspended"
      end
    end
    return hs
  end
  if condition.type == "Ready" and condition.message ~= nil and condition.message ~= "" then
    hs.message = condition.message
  end
end
return hs
