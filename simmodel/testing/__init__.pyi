from .policies import check_policy as check_policy
from .resources import check_resource as check_resource
from .systems import check_place as check_place, check_system as check_system
