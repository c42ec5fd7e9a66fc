package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of Pawl.
const GroupName = "pawl.dev"

var (
	// GroupVersion is the group and version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects the types of this package.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme teaches a scheme the types of this package.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource qualifies a resource name with the group, for errors and access checks.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &RolloutProgress{}, &RolloutProgressList{}, &RolloutRecord{}, &RolloutRecordList{},
		&RolloutPolicy{}, &RolloutPolicyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
